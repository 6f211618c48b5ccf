"""The fast path: the few lines between a call of a compiled function and XLA, written to measure.

For each program and way of calling it a Python function is written, as dataclasses write
theirs. It checks that the arguments are those it was written for and passes the values of the
variables to XLA and back. For a program that assigns variables they stay in its write-back:

    def run(*args, **kwargs):
        if FAST_PATH_BLOCKERS or kwargs: return miss(*args, **kwargs)
        try: (a0, a1, ) = args
        except ValueError: return miss(*args)
        if not (id(a0) == 140213 and type(a1) is T1 and user.__code__ is code and
                not (is_on(nan_check) or is_on(inf_check))): return miss(*args)
        try:
            if CURRENT[0] is not write_back: return careful((a1, ))
            CURRENT[0] = BUSY
            try:
                old = write_back.values
                ((write_back.values, result),) = starmap(jitted, ((old, a1, ),))
                if write_back.values[0].__class__ is not array:
                    write_back.values = old
                    raise NotTopLevel
            finally:
                CURRENT[0] = write_back
            return result
        except BaseException as error:
            old = None
            again = mend(error, args)
        return again(*args)

The first of them is the function's `__call__`, so that Python finds it without a frame of ours in
between; each knows an older one as `miss`, and the oldest what takes any arguments. Where there are
many, for batches of many lengths, those for arguments of the same shapes are found in a dict.

Rules this file keeps (`core/store.py` says why):
- between the call that donates (`starmap` is consumed by the unpacking) and the assignment of the
  new values nothing else is called;
- `CURRENT` is tested and set without a call in between, and put back whatever happens;
- a program that was staged by a foreign transform instead of run has donated nothing. If it
  assigns variables that is noticed afterwards and taken back, which costs less than checking before
  (a transform of other values, which lets it run, is not noticed: it runs once, as outside);
  otherwise the place is checked first.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, starmap
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias, final

import jax
import numpy as np

from jaxvars.compiler.program import NotTopLevel
from jaxvars.compiler.signature import Conditions, content_of, find_itself
from jaxvars.core.cells import BUSY, CURRENT, HOT_PATH_FILE, STORE, WriteBack
from jaxvars.core.frame import FAST_PATH_BLOCKERS, Owner
from jaxvars.objects.identity import bits_of, form_of
from jaxvars.objects.key_order import Order, order_of, order_test
from jaxvars.tensors.tensor import is_endless, is_uncut
from jaxvars.tracing import context
from jaxvars.typing import Array

MISS: Any = object()
"""What is returned for a call with names, dicts or lists that is not like one before."""

_NUMBERS = (int, float, complex)
_KEPT = 4  # fast paths that are tried one after the other
_MANY = 64  # fast paths of one kind that are kept for a function
_WRITTEN = 200  # fast paths written for a function before their cost is looked at
_SHARE = 0.02  # of the time since the first was written, that writing may take then

_TEMPLATE = """
def run(*args, **kwargs):
    if FAST_PATH_BLOCKERS or kwargs: return miss(*args, **kwargs)
    try: ({names}) = args
    except ValueError: return miss(*args)
    if not ({guards}): return miss(*args)
    try:
{body}
    except BaseException as error:
        old = None
        again = mend(error, args)
    return again(*args)
"""

_PURE = """
        result = jitted((), {leaves})
        {result}
"""

_READING = """
        if place(None) is not EVAL or CURRENT[0] is not None: return careful(({leaves}))
        CURRENT[0] = BUSY
        try:
            old = ()
            (result,) = starmap(jitted, ((old, {given}),))
        finally:
            CURRENT[0] = None
        {result}
"""

_WRITING = """
        if {failed}CURRENT[0] is not write_back: return careful(({leaves}))
        CURRENT[0] = BUSY
        try:
            old = write_back.values
            ((write_back.values, result),) = starmap(jitted, ((old{part}, {given}),))
            if write_back.values[0].__class__ is not array:
                write_back.values = old
                raise NotTopLevel{keep}
        finally:
            CURRENT[0] = write_back
        {result}
"""


class Parts(NamedTuple):
    """What a fast path needs of a program.

    Attributes:
        jitted: takes (donated values, read-only values if there are any, *arguments). Returns
            (new values, result) if it writes, else the result.
        write_back: holds the cells that it writes, those with donated values first.
        array: what their values are when they are not tracers.
        donated: how many of them are donated to it.
        readonly: keys of the cells whose values are passed read-only.
        finish: makes the function's result, or None.
        failed: takes the write-back; returns whether its values could not be computed. None for a
            program that needs so little memory that this is not checked at each call.
        keeps: whether the write-back keeps the values before, which were not donated.
        keys: what random keys are made of by default, if it makes any: jit does not check.
        careful: runs the program where the fast path may not.
    """

    jitted: Callable[..., Any]
    write_back: WriteBack | None
    array: type | None
    donated: int
    readonly: tuple[int, ...]
    finish: Callable[[Any], Any] | None
    failed: Callable[[WriteBack], bool] | None
    keeps: bool
    keys: str | None
    careful: Callable[[Sequence[Array]], Any]


class Rest(NamedTuple):
    """What a fast path does not do itself.

    Attributes:
        miss: takes the arguments of a call that it was not written for.
        mend: takes an error and the arguments; returns what to call instead, or raises.
    """

    miss: Callable[..., Any]
    mend: Callable[[BaseException, tuple[Any, ...]], Callable[..., Any]]


def write(
    parts: Parts,
    rest: Rest,
    items: Sequence[Any],
    values: Sequence[Array],
    more: Conditions,
    *,
    in_order: bool,
    by_shape: bool,
) -> Callable[..., Any] | None:
    """Return the fast path for calls like this one; None if there can be none.

    Args:
        parts: the program.
        rest: what it does not do itself.
        items: what the path will be called with: positional arguments, or leaves of all.
        values: what was traced, in order: items, and defaults of arguments that were not given.
        more: what it checks besides.
        in_order: the items come in the order of the values.
        by_shape: check shapes and dtypes here, rather than leave it to jit.
    """
    names: dict[str, Any] = {**more.names}
    places = _places(items, values, in_order=in_order)
    if places is None:
        return None
    guards = [
        _guard_traced(i, x, names, by_shape=by_shape) if i in places else _guard(i, x, names)
        for i, x in enumerate(items)
    ]
    if None in (guards := [*guards, *more.guards]):
        return None
    if parts.keys is not None:
        guards.append("config.jax_default_prng_impl == keys")
    if parts.write_back is not None:  # nor this: jit would donate what is lost
        checked = "is_on(nan_check) or is_on(inf_check)"
        guards.append(f"({checked})" if context.numbers_are_checked() else f"not ({checked})")
    names.update({f"C{n}": x for n, x in enumerate(values) if places[n] is None})
    leaves = [
        _pass(f"C{n}" if place is None else f"a{place}", value)
        for n, (place, value) in enumerate(zip(places, values, strict=True))
    ]
    source = _TEMPLATE.format(
        names=_tuple(f"a{i}" for i in range(len(items))),
        guards=" and ".join(filter(None, guards)) or "True",
        body=_body(parts, leaves),
    )
    names.update(parts._asdict(), **rest._asdict())
    names.update(FAST_PATH_BLOCKERS=FAST_PATH_BLOCKERS, STORE=STORE, CURRENT=CURRENT, BUSY=BUSY)
    names.update(uncut=is_uncut, place=context.place, EVAL=context.EVAL, starmap=starmap)
    names.update(nan_check=context.NAN_CHECK, inf_check=context.INF_CHECK, is_on=context.is_on)
    names.update(config=jax.config, NotTopLevel=NotTopLevel)
    exec(compile(source, HOT_PATH_FILE, "exec"), names)
    return names["run"]


def _places(
    items: Sequence[Any], values: Sequence[Array], *, in_order: bool
) -> list[int | None] | None:
    """Return which item each value is, None for a default; None if that is not certain."""
    by_id: dict[int, list[int]] = {}
    for i, item in enumerate(items):
        by_id.setdefault(id(item), []).append(i)
    wanted = Counter(map(id, values))
    for key, count in wanted.items():
        found = by_id.get(key, [])
        if len(found) not in (0, count) or (len(found) > 1 and not in_order):
            return None
    return [by_id[id(x)].pop(0) if by_id.get(id(x)) else None for x in values]


def _body(parts: Parts, leaves: Sequence[str]) -> str:
    write_back = parts.write_back
    keys = _tuple(f"STORE[{key}]" for key in parts.readonly)
    readonly = [f"(({keys}))"] if keys else []
    template = _WRITING if write_back is not None else _READING if parts.readonly else _PURE
    is_whole = write_back is None or parts.donated == len(write_back.keys)
    return template.format(
        leaves=_tuple(leaves),
        given=_tuple([*readonly, *leaves]),
        part="" if is_whole else f"[:{parts.donated}]",
        failed="" if parts.failed is None else "failed(write_back) or ",
        keep="\n            write_back.before = old" if parts.keeps else "",
        result="return result" if parts.finish is None else "old = None; return finish(result)",
    )


def _pass(name: str, value: Array) -> str:
    """Return what is passed to XLA: a copy of what the caller may write to while it runs."""
    return f"{name}.copy()" if isinstance(value, np.ndarray) else name


def _tuple(items: Iterable[str]) -> str:
    return "".join(f"{item}, " for item in items)


def is_traced(kind: type) -> bool:
    """Return whether values of exactly this type are traced."""
    if kind in _NUMBERS or issubclass(kind, np.number | np.ndarray):
        return True
    return issubclass(kind, jax.Array) and not issubclass(kind, context.Tracer)


def _guard_traced(i: int, value: Any, names: dict[str, Any], *, by_shape: bool) -> str | None:
    """Return the condition under which an argument is traced like `value`."""
    if not is_traced(type(value)):
        return None
    names[f"T{i}"] = type(value)
    condition = f"type(a{i}) is T{i}"
    if type(value) in _NUMBERS:
        return condition
    if isinstance(value, np.ndarray | np.generic) and value.dtype.itemsize >= 8:
        condition = f"{condition} and uncut(a{i})"
    names[f"S{i}"], names[f"D{i}"] = value.shape, value.dtype
    if not by_shape:  # jit will; but it takes no strings
        return f"{condition} and a{i}.dtype == D{i}" if type(value) is np.ndarray else condition
    is_weak = getattr(value, "weak_type", None)  # random keys have none
    weak = "" if is_weak is None else f" and a{i}.weak_type is {is_weak}"
    return f"{condition} and a{i}.shape == S{i} and a{i}.dtype == D{i}{weak}"


def _guard(i: int, value: Any, names: dict[str, Any]) -> str | None:
    """Return the condition under which an argument counts like `value`; None if it has none."""
    names[f"T{i}"], names[f"V{i}"] = type(value), value
    if type(value) is bool or value is None or isinstance(value, enum.Enum):
        return f"a{i} is V{i}"
    if type(value) in (str, bytes, int) or (type(value) is float and abs(value) > 0):
        return f"type(a{i}) is T{i} and a{i} == V{i}"
    if type(value) is float:  # NaN, or a zero with a sign
        names[f"V{i}"], names["bits"] = bits_of(value), bits_of
        return f"type(a{i}) is T{i} and bits(a{i}) == V{i}"
    del names[f"T{i}"], names[f"V{i}"]  # do not keep it alive
    known = find_itself(value)
    if known is None or known.content is None:
        return known and f"id(a{i}) == {known.number}"
    if known.content != content_of(value):
        return None
    names[f"V{i}"], names["content_of"] = known.content, content_of
    return f"id(a{i}) == {known.number} and content_of(a{i}) == V{i}"


_Path: TypeAlias = Callable[..., Any]
_Paths: TypeAlias = tuple[tuple[Any, _Path], ...]
"""Fast paths, the newest first, each with the shapes of what it was written for."""


def _linked(paths: _Paths, miss: _Path) -> _Path:
    """Return what runs the newest of some fast paths that fits a call, or `miss`.

    Each tries older ones alone, so that none form a cycle while another thread is in them.
    """
    groups: dict[Any, list[_Path]] = {}
    for shapes, path in paths:
        groups.setdefault(shapes if len(paths) > _KEPT else None, []).append(path)
    for group in groups.values():
        for path, after in pairwise((*group[:_KEPT], miss)):
            path.__globals__["miss"] = after
    if len(paths) <= _KEPT:
        return paths[0][1] if paths else miss
    first = {shapes: group[0] for shapes, group in groups.items()}

    def choose(*args: Any, **kwargs: Any) -> Any:
        return first.get(_shapes_of(args), miss)(*args, **kwargs)

    return choose


_SHAPED: dict[int, type] = {}  # by id, since a class may have any `==` and hash
_BY_VALUE = {id(kind) for kind in (int, float, complex, bool, str, bytes, type(None))}


def _shapes_of(items: Iterable[Any]) -> Any:
    """Return what is the same for all items that one fast path takes; the path looks closer."""
    kinds = [(x, id(type(x))) for x in items]
    return tuple([
        (kind, x.shape) if kind in _SHAPED else kind if kind in _BY_VALUE else id(x)
        for x, kind in kinds
    ])  # fmt: skip


class _Ordered(NamedTuple):
    """Fast paths for dicts whose keys come in one order; `test` tells which, if it matters."""

    order: Order
    test: Callable[[Any], bool] | None
    paths: _Paths
    run: _Path


_Written: TypeAlias = tuple[_Paths, dict[Any, tuple[_Ordered, ...]]]
"""Fast paths for positional arguments, and for others by their structure."""

_NONE: _Written = ((), {})


def _raise(error: BaseException, _: Any) -> Any:
    raise error


_OF_TREE = Rest(lambda *_: MISS, _raise)


@final
class FastPaths:
    """The fast paths of one function, for the last few ways in which it was called.

    Args:
        rest: what to do with calls for which there is none.
        slow: what to do with all calls while there is none for names, dicts and lists.
        install: makes a function that which is called.
    """

    def __init__(
        self, rest: Rest, slow: _Path, install: Callable[[Callable[..., Any]], None]
    ) -> None:
        self._rest, self._slow, self._install = rest, slow, install
        self._by_shape = False
        self._written, self._spent = 0, 0.0
        self._first = perf_counter()
        self.cool()

    def cool(self, *, by_shape: bool = False) -> None:
        """Forget them all; those to come check shapes if some did not fit."""
        self._by_shape = self._by_shape or by_shape
        self._others: dict[int, _Written] = {}
        self._settings: int | None = None
        self._take(_NONE)

    def miss(self, *, by_shape: bool) -> bool:
        """Return whether there are others, for JAX's settings now; else forget those there are."""
        if not by_shape and self._turn(context.settings()):
            return bool(self._flat or self._trees)
        self.cool(by_shape=by_shape)
        return False

    def _turn(self, now: int) -> bool:
        """Take those for JAX's settings now, and keep the others; return whether these differ."""
        before, self._settings = self._settings, now
        if before is None or before == now:
            return False
        others = {**self._others, before: (self._flat, self._trees)}
        self._others = dict(list(others.items())[-_KEPT:])
        self._take(self._others.pop(now, _NONE))
        return True

    def _take(self, written: _Written) -> None:
        self._flat, self._trees = written
        self._install(_linked(self._flat, self._rest.miss if self._trees else self._slow))

    def tree(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call with names, or with dicts and lists in it; return MISS if it is new."""
        if not self._trees or is_endless(args) or is_endless(kwargs):
            return MISS
        tree = args, kwargs
        leaves, treedef = jax.tree.flatten(tree)
        for known in self._trees.get(treedef, ()):
            if known.test is None or known.test(tree):
                return known.run(*leaves)
        return MISS

    def add(self, parts: Parts, args: Any, kwargs: Any, values: Any, more: Conditions) -> None:
        """Let calls like this one, under its settings, take a fast path, if there can be one."""
        self._turn(more.settings)
        start = perf_counter()
        if self._written > _WRITTEN and self._spent > _SHARE * (start - self._first):
            return  # calls differ so much that writing costs more than it saves
        self._write(parts, args, kwargs, values, more)
        self._written += 1
        self._spent += perf_counter() - start

    def _write(self, parts: Parts, args: Any, kwargs: Any, values: Any, more: Conditions) -> None:
        _SHAPED.update({id(kind): kind for kind in map(type, values) if kind not in _NUMBERS})
        flat = None if kwargs else write(
            parts, self._rest, args, values, more, in_order=True, by_shape=self._by_shape
        )  # fmt: skip
        if flat is not None:
            self._take((((_shapes_of(args), flat), *self._flat[: _MANY - 1]), self._trees))
        else:
            self._add_tree(parts, args, kwargs, values, more)

    def _add_tree(self, parts: Parts, args: Any, kwargs: Any, values: Any, more: Any) -> None:
        whole = jax.tree.leaves((args, kwargs), is_leaf=lambda x: isinstance(x, Owner))
        if any(isinstance(x, Owner) for x in whole):
            return  # flattening would read it
        leaves, treedef = jax.tree.flatten((args, kwargs))
        path = write(parts, _OF_TREE, leaves, values, more, in_order=False, by_shape=True)
        if path is not None:
            form, order = form_of(treedef), order_of((args, kwargs))
            known = self._trees.get(form, ())
            before = next((x.paths for x in known if x.order == order), ())
            paths = ((_shapes_of(leaves), path), *before[: _MANY - 1])
            first = _Ordered(order, order_test(order), paths, _linked(paths, _OF_TREE.miss))
            new = (first, *[x for x in known if x.order != order][: _KEPT - 1])
            others = [item for item in self._trees.items() if item[0] != form]
            self._take((self._flat, {form: new, **dict(others[: _KEPT - 1])}))
