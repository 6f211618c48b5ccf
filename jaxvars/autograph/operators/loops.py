"""What converted code calls in place of `while` and `for`.

Rules this file keeps:
- Python runs a loop itself as long as it can decide whether it continues; from the iteration on in
  which it cannot, the rest is one operation;
- a loop over a traced array is a scan, even with a `break`; only a traced condition or a traced
  number of iterations makes a while;
- a loop's test runs once for each time that Python would run it, for its effects;
- where users see boxes (`tensors/wrapping.py`), a loop over one is staged though its values are
  known; there a loop that changes a shape or type is written out, if its length is known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import numpy as np

from jaxvars.autograph.operators.branches import (
    Run,
    decide,
    extend_all,
    is_traced,
    items_of,
    stage_if,
)
from jaxvars.autograph.operators.logic import and_, changes_nothing
from jaxvars.autograph.operators.sequences import (
    OneOfTwo,
    Sequential,
    change_item,
    of_range,
    sequential,
)
from jaxvars.autograph.operators.state import Block, State
from jaxvars.autograph.operators.values import check_size, unknown_length_error
from jaxvars.control.loops import named_scan, named_while
from jaxvars.errors import ControlFlowError
from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.wrapping import boxed, is_box, is_boxing
from jaxvars.tracing import context
from jaxvars.typing import Array

Options: TypeAlias = dict[str, Any]  # of `set_loop_options`

_MOST_WRITTEN_OUT = 256  # iterations, of a loop that changes shapes


# ---------------------------------------------------------------- while
def while_stmt(test: Run, body: Run, state: State, **options: Any) -> None:
    """Run `body` as long as `test` holds; from where that is traced, as one operation."""
    condition = test()
    while not (is_traced(truth := decide(condition)) or is_box(condition)):
        if not truth:
            return
        body()
        condition = test()
    block = Block(state, (test, body), lenient=True, loop=True)
    step = functools.wraps(test)(lambda _: test())
    if is_traced(truth):
        _stage_while(block, truth, step, lambda _: body(), options)
    else:  # it could be run by Python: do so if it cannot be staged
        _stage_or_run(lambda: _stage_while(block, truth, step, lambda _: body(), options),
                lambda: _run_while(truth, test, body))  # fmt: skip


def _stage_or_run(stage: Run, run: Run) -> None:
    """Stage a loop; have Python run it where a shape or type changes."""
    try:
        stage()
    except ControlFlowError as error:
        try:
            run()
        except ControlFlowError:
            raise error from None


def _run_while(truth: Any, test: Run, body: Run) -> None:
    while truth:
        body()
        truth = decide(test())


def _stage_while(
    block: Block,
    first: Any,
    test: Callable[[Any], Any],
    body: Callable[[Any], Any],
    options: Options,
) -> None:
    """Stage a loop: `test(i)` says whether there is an iteration, `body(i)` runs it."""
    names = ("the loop's counter", *block.names)
    changes_none = changes_nothing(lambda: decide(test(0)))

    def is_plain() -> bool:  # a test in the body knows what has a value: something has run before
        return changes_none and not block.unset()

    @functools.wraps(test)
    def holds(i: Array, *state: Any) -> Array:
        block.enter(state)
        result = decide(test(i))
        block.put_names_back()
        return result

    def step(i: Array, state: Sequence[Any]) -> tuple[Any, ...]:
        block.enter(state)
        _iterate(block, lambda: body(i))
        go = is_plain() or decide(test(i + 1))
        _, packed = block.leave(block.start)
        if block.grown:
            raise unknown_length_error(block.grown[0].label)
        return (go, i + 1, *packed)

    def run() -> Sequence[Any]:
        start = (0, *block.packed_start())
        if is_plain():
            return named_while(holds, lambda i, *s: step(i, s)[1:], start, names, **options)[1:]
        all_names = ("the loop's condition", *names)
        turn = lambda _, i, *state: step(i, state)  # noqa: E731 - the test is run in the body
        goes_on = functools.wraps(test)(lambda go, *_: go)
        return named_while(goes_on, turn, (first, *start), all_names, **options)[2:]

    block.attempt(run)


def _iterate(block: Block, run: Run) -> None:
    """Run a loop's body; where it gives something its first value, as the two ways of an `if`."""
    if not block.unset():
        run()
        return
    inner, ways = block.first_or_later(run)
    stage_if(inner, block.given, ways)


# ---------------------------------------------------------------- for
def for_stmt(
    iterated: Any, extra_test: Run | None, body: Callable[[Any], Any], state: State, **options: Any
) -> None:
    """Run `body` for each item, as long as `extra_test` holds."""
    loop = _For(extra_test, body, state, options)
    items = sequential(check_size(iterated))
    if items is None:
        loop.run(iterated)
    elif is_boxing() and isinstance(items.length, int) and items.stacked:
        _stage_or_run(lambda: loop.stage(items), lambda: loop.run(_list_items(iterated, items)))
    else:
        loop.stage(items)


def _list_items(iterated: Any, items: Sequential) -> list[Any]:
    """Return the items of something of a known length, as boxes, known ones if it is known."""
    if is_box(iterated) and context.is_known(unwrap(iterated)):
        with context.at(context.EVAL):
            found, is_whole = list(unwrap(iterated)), unwrap(iterated).dtype.kind in "iu"
        return boxed([np.asarray(x) for x in found] if is_whole else found)  # computed with now
    if len(items) > _MOST_WRITTEN_OUT:
        raise ControlFlowError("A loop is too long to be written out.")
    return [change_item(boxed, items.item(i)) for i in range(len(items))]


@final
class _For(NamedTuple):
    """A `for`, without what it iterates over."""

    test: Run | None  # whether it continues, after a `break`
    body: Callable[[Any], Any]
    state: State
    options: Options

    def run(self, iterated: Any) -> None:
        """Have Python run it; stage the rest from where the test is traced."""
        iterator, count = iter(iterated), 0
        while (truth := self._continues()) is True:
            try:
                item = next(iterator)
            except StopIteration:
                return
            self._run_item(item)
            count += 1
        if not is_traced(truth):
            return
        if isinstance(iterated, range):
            try:
                self.stage(of_range(iterated[count:]))
                return
            except (jax.errors.TracerIntegerConversionError, jax.errors.ConcretizationTypeError):
                iterator = iter(iterated[count:])  # the body needs the number itself
        for item in iterator:
            if not self._run_guarded(item):
                return

    def _continues(self) -> Any:
        return True if self.test is None else decide(self.test())

    def _run_guarded(self, item: Any) -> bool:
        """Run an iteration if a traced condition has not left the loop; False if it surely has."""
        truth = self._continues()
        if is_traced(truth):
            block = Block(self.state, (self.body, item), lenient=True)
            stage_if(block, truth, (lambda: self._run_item(item), lambda: None))
        elif truth:
            self._run_item(item)
        return truth is not False

    def stage(self, items: Sequential) -> None:
        """Make the loop one operation: a while where the number of items is not known."""
        block = Block(self.state, (self.body, self.test), lenient=True, loop=True)
        if items.stacked is None:
            test = functools.wraps(self.body)(self._test_of(items))
            step = lambda i: self._run_item(change_item(boxed, items.item(i)))  # noqa: E731 - one use
            _stage_while(block, test(0), test, step, self.options)
        elif items.length:
            self._scan(block, items)

    def _run_item(self, item: Any) -> None:
        """Run the body for an item; for one of two shapes, as the two ways of an `if`."""
        if not isinstance(item, OneOfTwo):
            self.body(item)
            return
        block = Block(self.state, (self.body, item), lenient=True)
        ways = (lambda: self.body(item.first), lambda: self.body(item.second))
        stage_if(block, item.truth, ways)

    def _test_of(self, items: Sequential) -> Callable[[Any], Any]:
        """Return what says whether there is an iteration: after a `break` no item is read."""
        more, others = items.more, [self.test] if self.test else []
        if more is None:
            return lambda i: and_(i < items.length, *others)
        return more if self.test is None else lambda i: and_(others[0](), lambda: more(i))

    def _scan(self, block: Block, items: Sequential) -> None:
        length, stacked, most = None, items.all(), self.options.get("max_iterations")
        if isinstance(items.length, int) or most:  # else the size is open, in a program to be saved
            length = min(len(items), most or len(items))
            stacked = map_leaves(lambda x: x[:length], stacked)

        def step(state: Sequence[Any], item: Any) -> tuple[Any, Any]:
            block.enter(state)
            _iterate(block, lambda: self._run_guarded(change_item(boxed, item)))
            _, packed = block.leave(block.start)
            block.repeat()
            return packed, items_of(block.grown)

        def run() -> Sequence[Any]:
            start = block.packed_start()
            results, rows = named_scan(step, start, stacked, block.names, length=length)
            for i in range((length or len(items)) if block.grown else 0):
                extend_all(block.grown, map_leaves(lambda x: x[i], rows))  # noqa: B023 - used at once
            return results

        block.attempt(run, runs=True)
