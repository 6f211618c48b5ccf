"""The heart: where values are, frames, and Variables.

The words, which are used in this sense alone:

| word | what it is |
|---|---|
| cell | a name for one value; a Variable has one, and a State is over cells |
| signal | a cell that keeps nothing: what is written to it goes out with a program's results |
| store | the dict from cells' keys to values (`STORE`) |
| write-back | the values that a compiled step has left behind, not yet in the store |
| frame | what answers reads and writes now: eager, of a trace, of a pure call, of a transaction |
| epoch | a time in which JAX may use an inner trace again, as the values in it are right |
| staged | traced into a program over the cells that it reads and writes |
| executable | a staged program with its compiled form, for one signature |
| fast path | a function written for calls like the last one, from its arguments to XLA |
| donated | given to XLA, which reuses the memory: the array is deleted |
| guard | what is asked before values are used, and may refuse (`tracing/guards.py`) |
| shared | perhaps referenced elsewhere: copied before it is donated (`SHARED`) |
| unproven | computed by a step that may still fail (`UNPROVEN`) |

How a value is read:

| verb | for whom | a tape sees it | waits for a step | marks it as shared |
|---|---|---|---|---|
| `Frame.read` | who computes with it, and may keep it | yes | until it is computed | yes |
| `Frame.look` | who uses it at once | yes | until it is computed, if `wait` | if it must be read |
| `Frame.read_all` | who needs several of one moment | yes | until all are computed | yes |
| `Frame.get` | a frame above this one | no | until it is computed | yes |
| `Frame.peek` | who shows it | no | if it is with another step | if it is `keep` |
| `store.take`, `take_all` | the eager frame, to hand it out | no | until it is computed | yes |
| `store.look` | the eager frame, for use at once | no | never: None then | no |
| `store.stored` | who has `CURRENT`, or found it None | no | never | no |
"""
