"""A branch that does not run changes no Python object: what changes is carried, or refused.

A program is a function that makes the objects and returns what uses them; run by Python it says
what is right. A program that is refused returns what must be as before, too.
"""

# The programs are as people write them.
# ruff: noqa: B006, B010, RET506

from __future__ import annotations

import argparse
import contextlib
import contextvars
import ctypes
import dataclasses
import functools
import io
import itertools
import os
import queue
import random
import threading
import types
import weakref
from array import array
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque

import autograph_objects as other_module
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv

COUNT = 0
CARRIED, REFUSED = {}, {}


def carried(make):
    CARRIED[make.__name__] = make
    return make


def refused(message):
    def keep(make):
        REFUSED[make.__name__] = make, message
        return make

    return keep


class Slots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0.0


class Model:
    total = 0.0

    def __init__(self):
        self.n = 0.0
        self.items = {}
        self.slots = Slots()
        self.buffer = np.zeros(3)

    def add(self, x):
        self.n += x

    def __setitem__(self, key, value):
        self.items[key] = value

    def __add__(self, x):
        self.n = self.n + x
        return self.n

    def __call__(self, x):
        self.n = self.n * x

    @property
    def shown(self):
        return self._shown

    @shown.setter
    def shown(self, x):
        self._shown = x

    @functools.cached_property
    def cached(self):
        return [1.0, 2.0]

    def steps(self, x):
        self.n = x
        yield x

    @classmethod
    def count(cls, x):
        cls.total = cls.total + x


# ---------------------------------------------------------------- attributes
@carried
def both_branches_of_nested_ifs():
    m = Model()

    def run(x):
        if x > 0:
            m.add(1.0)
            if x > 2:
                m.add(10.0)
        elif x < -2:
            m.add(100.0)
        return m.n

    return run


@carried
def setattr_and_the_namespace():
    m, c, d = Model(), types.SimpleNamespace(n=0.0), argparse.Namespace(n=0.0)

    def run(x):
        if x > 0:
            setattr(m, "n", x)
            vars(c).update(n=2 * x)
            d.__dict__["n"] = 3 * x
        return m.n + c.n + d.n

    return run


@carried
def an_attribute_that_both_delete():
    m = Model()

    def run(x):
        if x > 0:
            del m.n
        else:
            delattr(m, "n")
        return x if not hasattr(m, "n") else -99.0

    return run


@carried
def slots_classes_and_what_objects_have_from_them():
    class Sub(Model):
        limit = 1.0

    m = Sub()

    def put(slots, x):
        slots.n = x

    def run(x):
        if x > 0:
            put(m.slots, x)
            Sub.count(x)
            m.limit = x
        return m.slots.n + 10 * Sub.total + 100 * m.limit

    return run


@carried
def operators_properties_and_calls_of_objects():
    m = Model()
    m.shown, m["k"] = 0.0, 0.0

    def run(x):
        y = 0.0
        if x > 0:
            y = m + x
            m.shown = x
            m["k"] = y
            m(2.0)
        return m.n + 10 * m.shown + 100 * m.items["k"] + y

    return run


@carried
def functions_that_are_not_converted():
    m, n, o = Model(), Model(), Model()

    @jv.autograph.do_not_convert
    def add(x):
        m.add(x)

    def matched(x):
        match 3:
            case 3:
                n.add(x)

    def run(x):
        if x > 0:
            add(x)
            matched(2 * x)
            list(o.steps(x))
        return m.n + n.n + o.n

    return run


@carried
def partials_defaults_and_attributes_of_functions():
    m = Model()
    add = functools.partial(Model.add, m)

    def total(x, kept=[0.0]):
        kept[0] += x
        total.calls += 1.0
        return kept[0]

    total.calls = 0.0

    def run(x):
        y = 0.0
        if x > 0:
            add(x)
            y = total(x)
        return y + total(1.0) + 10 * m.n + 100 * total.calls

    return run


@carried
def an_object_deep_inside():
    m = Model()
    root = {"a": [(types.SimpleNamespace(model=m),)]}

    def touch(x):
        root["a"][0][0].model.n += x

    def run(x):
        if x > 0:
            touch(x)
        return m.n

    return run


@carried
def the_owner_is_another_one_in_the_branch():
    m, a, b = Model(), Model(), Model()
    m.child = a

    def run(x):
        if x > 0:
            m.child = b
            m.child.n = x
            m.child = a
        return a.n * 10 + b.n

    return run


@carried
def objects_of_another_module():
    other_module.STATE.n = 0.0

    def run(x):
        if x > 0:
            other_module.bump(x)
        result = other_module.STATE.n
        other_module.STATE.n = 0.0
        return result

    return run


@carried
def a_module_with_variables():
    class Net(jv.Module):
        def __init__(self):
            super().__init__()
            self.w, self.calls = jv.Variable(1.0), 0.0

        def __call__(self, x):
            self.calls += 1.0
            self.w.assign(x)
            return self.w * x

    net = Net()

    def run(x):
        net.w.assign(1.0)
        y = net(x) if x > 0 else 0.0
        result, net.calls = y + net.calls + net.w, 0.0
        return result

    return run


@carried
def a_module_without_a_class_of_its_own():
    m = jv.Module()
    m.n, m.items = 0.0, [0.0]

    def bump(x):
        m.n += x
        m.items[0] = x

    def run(x):
        if x > 0:
            bump(x)
        result, m.n, m.items[0] = m.n + m.items[0], 0.0, 0.0
        return result

    return run


@carried
def a_branch_that_raises():
    m = Model()

    def run(x):
        if x > 100:
            m.add(5.0)
            raise ValueError("large")
        else:
            m.add(1.0)
        return m.n

    return run


@carried
def conditions_and_operands_with_effects():
    m, n = Model(), Model()

    def more(x):
        m.n += 1.0
        return m.n < x

    def bump():
        n.n += 1.0
        return n.n > 0

    def run(x):
        while more(x):
            pass
        y = x > 0 and bump()
        return m.n + 10 * n.n + y

    return run


@carried
def loops():
    m, n, o = Model(), Model(), Model()

    def run(x):
        while x > 0:
            m.add(x)
            x = x - 1
        for y in jnp.arange(4.0) * x:
            n.add(y)
            n["last"] = y
        for _ in range(5):
            o.add(1.0)
            if o.n > x:
                break
        return m.n + 10 * n.n + 100 * n.items["last"] + 1000 * o.n

    return run


class Bare:
    def __init__(self):
        self.d = defaultdict(float)


def _get(d, o, x):
    d["k"] = d.get("k", x) * 2 + 1.0
    o.k = getattr(o, "k", x) * 3 + vars(o).get("k", 5.0)


def _default(d, o, x):
    o.d["k"] += x
    d["j"] = d.setdefault("j", 3.0) * 2 + len(d) + len(o.d)


def _ask(d, o, x):
    if "k" in d and hasattr(o, "k"):
        d["k"] = d["k"] + 10.0
    else:
        d["k"], o.k = x, 1.0


def _try(d, o, x):
    try:
        d["k"] = d["k"] + 1.0
    except KeyError:
        d["k"] = x
    Bare.k = getattr(Bare, "k", 1.0) + o.d.pop("j", 0.0)
    o.d["j"] = Bare.k


def _nested(d, o, x):
    for y in jnp.arange(2.0):
        d["k"] = d.get("k", x) * 2 + y


@pytest.mark.parametrize("turn", [_get, _default, _ask, _try, _nested])
def test_what_a_loop_sets_first_is_absent_in_the_first_iteration_alone(turn):
    def seen(d, o):
        kind = vars(Bare).get("k", 0.0)
        if hasattr(Bare, "k"):
            del Bare.k
        return {**d, **o.d}, getattr(o, "k", 0.0), kind

    def whiles(x):
        d, o = {}, Bare()
        while x > 0:
            turn(d, o, x)
            x = x - 1
        return seen(d, o)

    def scans(x):
        d, o, out = {}, Bare(), []
        for y in jnp.arange(3.0) + x:
            turn(d, o, y)
            out.append(len(d) * y)
            d["z"], d["y"] = y, x
        return seen(d, o), out, list(map(ord, d))

    def ranges(x):
        d, o = {}, Bare()
        for y in range(x.astype(int)):
            turn(d, o, y * 1.0)
        return seen(d, o)

    for run in (whiles, scans, ranges):
        x = jnp.float32(3)
        found, wanted = jv.compile(run, autograph=True)(x), run(x)
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        np.testing.assert_allclose(jax.tree.leaves(found), jax.tree.leaves(wanted))


def test_a_loop_evaluates_its_test_and_its_slopes_on_what_it_sets_first():
    def run(x):
        d = {}
        while d.get("k", 0.0) < x:
            d["k"] = d.get("k", 0.0) + x / 2
        return d["k"]

    def slope(x):
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        return y, tape.gradient(y, x)

    x = jnp.float32(3)
    assert jv.compile(slope, autograph=True)(x) == slope(x) == (3.0, 1.0)
    with pytest.raises(jv.errors.CheckError, match=r"d\['k'\].* has no value: only the loop at"):
        jv.compile(run, autograph=True)(jnp.float32(-1))


def _take(d, x):
    d.pop("a", 0.0)


def _toggle(d, x):
    if "k" in d:
        del d["k"]
    else:
        d["k"] = x


def _count(d, x):
    d[len(d)] = x


@pytest.mark.parametrize(("turn", "name"), [(_take, "'a'"), (_toggle, "'k'"), (_count, "2")])
def test_what_is_there_in_some_iterations_is_refused(turn, name):
    def run(x):
        d = {"a": 1.0}
        while x > 0:
            turn(d, x)
            x = x - 1
        return len(d)

    message = (
        rf"d\[{name}\].* has a value at the start of some .* loop at test_autograph_world.py:\d+"
    )
    with pytest.raises(jv.errors.ControlFlowError, match=message):
        jv.compile(run, autograph=True)(jnp.float32(3))


# ---------------------------------------------------------------- closures
@carried
def locals_of_threads():
    a = threading.local()
    a.n = 0.0

    def run(x):
        if x > 0:
            a.n = a.n + x
        return a.n

    return run


@carried
def closures():
    n = 0.0

    def made(x):
        def bump():
            nonlocal n
            n += x

        return bump

    def run(x):
        nonlocal n
        n, k = 0.0, 0.0

        def here():
            nonlocal k
            k += x

        bump = made(x)
        if x > 0:
            bump()
            here()
        return n + 10 * k

    return run


@carried
def a_class_of_a_metaclass():
    class Meta(type):
        n = 0.0

        def bump(cls, x):
            cls.n = cls.n + x

    class Bumped(metaclass=Meta):
        m = 0.0

    def run(x):
        if x > 0:
            Bumped.bump(x)
            Bumped.m = x
        return Bumped.n + 10 * Bumped.m

    return run


@dataclasses.dataclass
class Config:
    size: int = 1


@refused(r"'a if x > 0 else b' is Config\(size=1\) if true, but another Config\(size=1\) if false")
def one_of_two_equal_objects():
    a, b = Config(), Config()

    def run(x):
        (a if x > 0 else b).size = 7
        return a.size * 10 + b.size

    return run, lambda: (a, b)


@refused(r"'s' is frozenset\(\{1.0\}\) if true, but frozenset\(\{1\}\) if false")
def equal_elements_of_a_set():
    s = {1}

    def run(x):
        if x > 0:
            s.clear()
            s.add(1.0)
        return x

    return run, lambda: s


@refused("The global 'COUNT' is assigned at test_autograph_world.py")
def a_global():
    def bump():
        global COUNT
        COUNT += 1

    def run(x):
        if x > 0:
            bump()
        return x

    return run, lambda: COUNT


# ---------------------------------------------------------------- containers
@carried
def dicts():
    d, e, f, g = {"a": 0.0}, {"a": 1.0}, {}, defaultdict(float)

    def run(x):
        if x > 0:
            d.update(a=x)
            y = e.pop("a")
            f.setdefault("b", x)
            g["k"] += x
        else:
            y = -e.pop("a")
            f.setdefault("b", -x)
            g["k"] -= x
        return d["a"] + 10 * y + 100 * f["b"] + 1000 * g["k"] + len(e)

    return run


@carried
def sets_and_deques():
    s, q = {"a"}, deque([1.0], maxlen=2)

    def run(x):
        if x > 0:
            s.add("b")
            q.append(x)
        else:
            s.add("b")
            q.append(-x)
        return q[-1] + 10 * q[0] + len(s)

    return run


@carried
def lists():
    a, b, c, d = [1.0, [3.0]], [3, 1, 2], [3.0], []

    def run(x):
        nonlocal d
        if x > 0:
            y = a.pop(0)
            b.sort()
            c.insert(0, x)
            d += [x]
        else:
            y = -a.pop(0)
            c.insert(0, -x)
            d += [2 * x]
        return y + a[0][0] + 10 * b[0] + 100 * c[0] + 1000 * c[1] + d[0]

    return run


@carried
def a_list_that_a_called_function_appends_to():
    s = []

    def keep(x):
        s.append(x)

    def run(x):
        for y in jnp.arange(3.0) + x:
            keep(y)
        return sum(s), len(s)

    return run


@carried
def what_the_block_makes_itself():
    def run(x):
        y = 0.0
        if x > 0:
            d, s, m, b = {}, set(), Model(), np.zeros(2)
            items = [x][:]
            items.append(2.0)
            items.pop(0)
            d["a"] = x
            s.add(3)
            m.add(x)
            b[0] = 1
            y = d["a"] + items[0] + len(s) + m.n + b[0]
        return y

    return run


@carried
def caches():
    m = Model()

    @functools.lru_cache
    def table(n):
        return float(n)

    def run(x):
        return table(3) + m.cached[1] if x > 0 else 0.0

    return run


def _one_way(make, change):
    def program():
        owner = make()

        def run(x):
            if x > 0:
                change(owner)
            return x

        return run, lambda: (list(owner), list(getattr(owner, "items", list)()))

    return program


_ONE_WAY = {
    "dict_pop": (lambda: {"a": 1.0}, lambda d: d.pop("a"), r"'owner\['a'\]' must also be init"),
    "dict_clear": (lambda: {"a": 1.0}, lambda d: d.clear(), r"'owner\['a'\]' must also be init"),
    "dict_new": (dict, lambda d: d.update(a=1.0), r"'owner\['a'\]' must also be initialized in th"),
    "default": (lambda: defaultdict(float), lambda d: d["a"], r"'owner\['a'\]' must also be init"),
    "counter": (Counter, lambda d: d.update("a"), r"'owner\['a'\]' must also be initialized"),
    "order": (lambda: OrderedDict(a=1, b=2), lambda d: d.move_to_end("a"), "the order of 'owner'"),
    "moved": (lambda: {"a": 1.0, "b": 1.0}, lambda d: d.update(a=d.pop("a") + 1.0),
     "the order of 'owner' is changed"),
    "set_add": (set, lambda s: s.add("a"), r"'owner' is frozenset\({'a'}\) if true, but fro"),
    "set_discard": (lambda: {"a"}, lambda s: s.discard("a"), r"'owner' is frozenset\(\) if true"),
    "deque": (deque, lambda q: q.append(1.0), r"'owner' is \[float32\[\]\] if true, but \[\] if"),
    "append": (list, lambda s: s.append(1.0), "The list 'owner' grows in a branch at test_autog"),
    "pop": (lambda: [1.0], lambda s: s.pop(), r"'owner' is \[\] if true, but \[1.0\] if false"),
    "array": (lambda: np.zeros(2), lambda a: np.add(a, 1, out=a), r"'owner' \(ndarray\) is chang"),
    "large": (lambda: np.zeros(1 << 18), lambda a: a.sort(), None),
    "objects": (lambda: np.array([1000.5, None], object), lambda a: a.put(0, a[0] + 1.0),
     r"'owner' \(ndarray\) is changed"),
    "bytes": (lambda: bytearray(b"ab"), lambda b: b.reverse(), r"'owner' \(bytearray\) is changed"),
    "numbers": (lambda: array("d", [1.0]), lambda a: a.append(1.0),
     r"'owner' \(array\) is changed"),
    "chain": (lambda: ChainMap({}), lambda c: c.update(a=1.0),
     r"'owner.maps\[0\]\['a'\]' must also"),
    "weak_set": (weakref.WeakSet, lambda s: s.add(Model), r"'owner.data' is frozenset\(\{<weakref"),
    "weak_keys": (weakref.WeakKeyDictionary, lambda d: d.update({Model: 1.0}),
     r"'owner.data\[<weakref.*' must also be init"),
    "weak_values": (weakref.WeakValueDictionary, lambda d: d.update(a=Model),
     r"'owner.data\['a'\]' must also be init"),
}  # fmt: skip


for _name, (_make, _change, _message) in _ONE_WAY.items():
    _program = _one_way(_make, _change)
    if _message is None:
        CARRIED[_name] = lambda program=_program: program()[0]
    else:
        REFUSED[_name] = _program, _message


@refused("'m.n' must also be initialized in the main branch of the `if` at test_autograph_world")
def an_attribute_that_one_deletes():
    m = Model()

    def run(x):
        if x > 0:
            del m.n
        return x

    return run, lambda: m.n


@refused(r"'m.buffer' \(ndarray\) is changed in a branch or loop at test_autograph_world.py:\d+")
def an_array_in_a_loop():
    m = Model()

    def run(x):
        while x > 0:
            np.add(m.buffer, 1, out=m.buffer)
            x = x - 1
        return x

    return run, lambda: m.buffer.tolist()


def _plus(w, x):
    w += 1.0
    return w


def _plus_attribute(w, x):
    b = types.SimpleNamespace(a=types.SimpleNamespace(w=w))
    b.a.w += 1.0
    return b.a.w


def _plus_item(w, x):
    d = {"w": w}
    d["w"] += x
    return w + 0.0


def _sorted(w, x):
    w.sort()
    return w + 1.0


def _plus_another(w, x):
    v = w
    v += 1.0
    return w * x


@pytest.mark.parametrize(
    "turn", [_plus, _plus_attribute, _plus_item, _sorted, _plus_another], ids=lambda f: f.__name__
)
def test_an_array_that_a_loop_carries_is_not_changed_in_place(turn):
    def whiles(x):
        z = w = np.arange(2.0)[::-1]
        while x > 0:
            w = turn(w, x)
            x = x - 1
        return z + w

    def scans(x):
        b = types.SimpleNamespace(w=np.zeros(2))
        for y in jnp.arange(3.0) * x:
            b.w = turn(b.w, y)
        return b.w

    message = "NumPy array before a loop on traced values, and is changed in place in it at test_a"
    for run in (whiles, scans):
        with pytest.raises(jv.errors.ControlFlowError, match=rf"'(b\.)?w' is a {message}"):
            jv.compile(run, autograph=True)(jnp.float32(3))


def test_an_array_that_a_loop_has_made_may_be_changed_in_place():
    def run(x):
        w, n = np.zeros(2), np.float32(1)
        for y in jnp.arange(3.0):
            w = w + y
            w += x
            n += y
        w += 1.0
        return w, n

    found = jv.compile(run, autograph=True)(jnp.float32(3))
    assert jax.tree.map(np.ndarray.tolist, jax.tree.map(np.asarray, found)) == ([13.0, 13.0], 4.0)


def _put(w, x):
    w[0] = x
    return w[::-1]


def _union(w, x):
    w = {"a": w, "b": (w,)}
    w["b"][0].reverse()
    return w["a"]


@pytest.mark.parametrize("turn", [_put, _union])
def test_a_list_that_a_loop_carries_is_not_changed_in_place(turn):
    def run(x):
        z = w = [1.0, 2.0]
        while x > 0:
            w = turn(w, x)
            x = x - 1
        return z

    def merged(x):
        z = w = {"a": 1.0}
        for y in jnp.arange(3.0) + x:
            w |= {"a": y}
        return z

    for f, name in ((run, "w"), (merged, "w")):
        with pytest.raises(
            jv.errors.ControlFlowError, match=f"'{name}' is changed in place in the"
        ):
            jv.compile(f, autograph=True)(jnp.float32(3))


@refused(r"'stack._exit_callbacks' is \[.*\] if true, but \[\] if false")
def what_is_done_at_the_end():
    stack, log = contextlib.ExitStack(), []

    def run(x):
        if x > 0:
            stack.callback(log.append, 1)
        return x

    return run, lambda: list(stack._exit_callbacks)


@refused("'view' .ndarray. is changed")
def a_view_of_an_array():
    a = np.zeros(3)
    view = a[1:]

    def run(x):
        if x > 0:
            view[0] = 2
        return x

    return run, lambda: a.tolist()


@refused(r"The list 'a\[0\]' grows in a branch at test_autograph_world.py")
def a_list_in_an_array_of_objects():
    a = np.array([None, 1.0])
    a[0] = []

    def run(x):
        if x > 0:
            a[0].append(x)
        return x

    return run, lambda: a[0]


@refused("'m.w' is given another Variable, or a value in its place, in a branch or loop at test_a")
def a_variable_for_another():
    m = jv.Module()
    m.w, m.v = jv.Variable(1.0), jv.Variable(2.0)

    def run(x):
        if x > 0:
            m.w = m.v
        return m.w * x

    return run, lambda: (m.w, m.v)


@refused(r"'s\[0\]' is given another Variable, or a value in its place")
def a_value_for_a_variable():
    s = [jv.Variable(1.0)]

    def run(x):
        while x > 0:
            s[0] = s[0] * 2
            x = x - 1
        return s[0] + x

    return run, lambda: s


@refused(r"The loop at test_autograph_world.py:\d+, in run changes 's' from \[3.0\] to")
def an_insertion_in_a_loop():
    s = [3.0]

    def run(x):
        for y in jnp.arange(3.0) + x:
            s.insert(0, y)
        return sum(s)

    return run, lambda: s


@refused(r"The list 'c.log' grows in a branch .* by 1 items if it holds and by 0 if not")
def a_setter_with_a_log():
    class Logged:
        def __init__(self):
            self.log = []

        x = property(lambda self: len(self.log), lambda self, _: self.log.append("x"))

    c = Logged()

    def run(x):
        if x > 0:
            c.x = x
        return c.x

    return run, lambda: c.log


@refused(r"'numbers' \(Random\) is changed")
def random_numbers():
    numbers = random.Random(0)

    def run(x):
        return numbers.random() if x > 0 else 0.0

    return run, numbers.getstate


_CONTEXT = contextvars.ContextVar("_CONTEXT", default=None)
_STRUCTURE = type("S", (ctypes.Structure,), {"_fields_": [("n", ctypes.c_int)]})
_OF_PROCESS = {
    "random": (lambda _: random.random(), random.getstate, "'random' .Random."),
    "np_random": (
        lambda _: np.random.rand(),  # noqa: NPY002
        lambda: np.random.get_state()[2],  # noqa: NPY002
        "'np.random' .RandomState.",
    ),
    "context": (lambda _: _CONTEXT.set(2), _CONTEXT.get, "'_CONTEXT' .ContextVar."),
}


@pytest.mark.parametrize("name", _OF_PROCESS)
def test_what_a_process_has_once_is_not_changed_by_a_branch(name):
    change, see, message = _OF_PROCESS[name]
    _CONTEXT.set(1)
    before = see()
    for x in (3.0, -1.0):
        with pytest.raises(jv.errors.ControlFlowError, match=f"{message} is changed in a branch"):
            jv.compile(lambda x: change(x) if x > 0 else x, autograph=True)(x)
    assert see() == before


@pytest.mark.parametrize(("make", "change"), [
    (lambda: np.random.RandomState(0), lambda o: o.rand()),
    (queue.SimpleQueue, lambda o: o.put(1)), (queue.Queue, lambda o: o.put(1)),
    (lambda: ctypes.c_int(1), lambda o: setattr(o, "value", 2)),
    (lambda: _STRUCTURE(1), lambda o: setattr(o, "n", 2)),
    (ctypes.c_int * 2, lambda o: o.__setitem__(0, 1)),
])  # fmt: skip
def test_what_is_not_put_back_is_refused(make, change):
    owner = make()
    step = jv.compile(lambda x: change(owner) if x > 0 else x, autograph=True)
    with pytest.raises(jv.errors.ControlFlowError, match=r"'owner' \(\w+\) is changed in a branch"):
        step(1.0)


def test_the_environment_is_not_changed_by_a_branch(monkeypatch):
    monkeypatch.setenv("AUTOGRAPH", "0")
    step = jv.compile(lambda x: os.environ.update(AUTOGRAPH="1") if x > 0 else x, autograph=True)
    with pytest.raises(jv.errors.ControlFlowError, match=r"'os.environ' ._Environ. is changed in"):
        step(1.0)


def _endless():
    while True:
        yield 1.0


def _counting():
    n = 1000.5
    while True:
        yield n
        n += 1.0


def _advanced():
    numbers = _counting()
    next(numbers), next(numbers)
    return numbers


_ITERATORS = [
    lambda: iter([1.0, 2.0]), itertools.count, _endless, _advanced,
    lambda: itertools.chain("ab"), lambda: itertools.accumulate([1, 2]), lambda: enumerate("ab"),
    lambda: itertools.islice("ab", 2), lambda: io.StringIO("a\nb"), lambda: map(ord, "ab"),
]  # fmt: skip


@pytest.mark.parametrize("make", _ITERATORS)
def test_an_iterator_is_not_advanced_by_a_branch(make):
    it = make()
    step = jv.compile(lambda x: (next(it), next(it), x)[2] if x > 0 else 0.0, autograph=True)
    with pytest.raises(jv.errors.ControlFlowError, match=r"'it.*' \(\w+\) is changed in a branch"):
        step(1.0)


@pytest.mark.parametrize("make", [*_ITERATORS, lambda: [io.StringIO("a").close()]])
def test_an_iterator_that_is_not_advanced_does_not_matter(make):
    it = make()
    step = jv.compile(lambda x: x * len([it]) if x > 0 else 0.0, autograph=True)
    assert step(2.0) == 2.0


def test_an_assertion_that_holds_evaluates_no_message():
    asked = []

    def why():
        asked.append(1)
        return "why"

    def run(x):
        assert x > 0, why()
        return len(asked) + x

    assert jv.compile(run, autograph=True)(1.0) == run(1.0) == 1.0
    with pytest.raises(jv.errors.CheckError, match="x > 0 failed: why"):
        jv.compile(run, autograph=True)(-1.0)


@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.filterwarnings("ignore::jaxvars.errors.LeakWarning")  # some objects are not set back
def test_what_changes_is_carried(name):
    step = jv.compile(CARRIED[name](), autograph=True)
    for x in (3.0, -1.0):
        found, wanted = jax.tree.leaves(step(x)), jax.tree.leaves(CARRIED[name]()(x))
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_is_refused_and_as_it_was(name):
    make, message = REFUSED[name]
    run, see = make()
    before = repr(see())
    with pytest.raises(jv.errors.ControlFlowError, match=message):
        jv.compile(run, autograph=True)(3.0)
    assert repr(see()) == before


def test_an_error_in_a_branch_leaves_objects_as_they_were():
    m, s = Model(), ["old"]

    def change(x):
        m.add(x)
        s.append(x)
        return jnp.ones(2) @ jnp.ones(3)

    with pytest.raises(TypeError):
        jv.compile(lambda x: change(x) if x > 0 else x, autograph=True)(1.0)
    assert (m.n, s) == (0.0, ["old"])


@pytest.mark.parametrize("read", [lambda s, x: s[-1] + x, lambda s, x: len(s) * x, sum])
def test_an_iteration_does_not_read_what_others_appended(read):
    def run(xs):
        out = [0.0]
        for x in xs:
            out.append(read(out, x) if read is not sum else sum(out))
        return out

    with pytest.raises(jv.errors.ControlFlowError, match="The list 'out' grows in a loop that is"):
        jv.compile(run, autograph=True)(jnp.arange(3.0))


def test_objects_of_a_class_without_a_module_are_looked_through():
    """`__module__` is None where a class was made by code without globals."""
    hidden = type("Hidden", (), {"__module__": None})()
    hidden.n = 0.0

    def run(x):
        if x > 0:
            hidden.n = x + 1
        result, hidden.n = hidden.n, 0.0
        return result

    assert float(jv.compile(run, autograph=True)(jnp.float32(2.0))) == 3.0
