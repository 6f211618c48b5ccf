"""Random programs, run in every way that jaxvars offers; all must agree.

    python -m tests.fuzz --minutes 10 --seed 1
    python -m tests.fuzz --lives --minutes 10 --seed 1

`grammar.py` writes programs as source code, `modes.py` runs one in each way and compares,
`shrink.py` makes a failing program small, `search.py` goes from one to the next, in as many
processes as there are cores. The promise: eager == compiled == pure under jit ==
vmap over states, for outputs and final variables; tapes around eager and compiled code give the
same gradients; and derivatives of the pure function are those of finite differences.

`lives.py` is about state that lasts: what becomes of values, slots and averages when models are
edited, frozen, trained, copied, saved and restored.
"""
