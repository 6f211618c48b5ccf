"""Lists and dicts that a branch or loop chooses: the same objects, copies to read, or refused.

Run by Python a program says what is right. What is refused would have other numbers: a program
returns copies, and a change of a list would not be seen in the list that it is in Python.
"""

# The programs are as people write them.
# ruff: noqa: B007, RUF034

from __future__ import annotations

import types
from collections import defaultdict, namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import tf
from jaxvars.errors import ControlFlowError

XS = [3.0, -2.0, 1.0]
SAME, READ, REFUSED = [], [], {}


def same(run):
    SAME.append(run)
    return run


def read(run):
    READ.append(run)
    return run


def refused(name):
    return lambda run: REFUSED.setdefault(run, name)


def check(run):
    x, xs = jnp.float32(3.0), jnp.float32(XS)
    found, wanted = jv.compile(run, autograph=True)(x, xs), run(x, xs)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    np.testing.assert_allclose(jax.tree.leaves(found), jax.tree.leaves(wanted))


# ---------------------------------------------------------------- the same on all ways
@same
def both_branches(x, _):
    seen, counts = [], defaultdict(float)
    if x > 0:
        rows, numbers = seen, counts
    else:
        numbers, rows = counts, seen
    rows.append(x)
    numbers["k"] += x
    return seen, counts["k"]


@same
def returned_with_others(x, _):
    pair = namedtuple("pair", "first second")([x], [2 * x])

    def get():
        if x > 0:
            return pair, x
        return pair, -x

    found, y = get()
    found.first[0] = x + 100
    return pair.first[0] + y


@same
def in_each_iteration(x, xs):
    rows = seen = [0.0]
    for y in xs:
        rows = seen
        rows[0] += y
    while x > 0:
        rows = seen
        rows[0] *= 2
        x = x - 1
    rows[0] += 1
    return seen[0]


@same
def an_expression(x, _):
    a = [x]
    (a if x > 0 else a)[0] = 7.0
    return a


def test_it_is_the_same_for_a_tensor():
    def run(x):
        seen = [x]
        rows = seen if x > 0 else seen
        rows[0] += x
        rows.append(x)
        return seen[0] + len(seen)

    assert float(tf.function(run)(tf.constant(3.0))) == 8.0


# ---------------------------------------------------------------- copies are read
@read
def one_of_two(x, _):
    a, b = [x, {"k": 1.0}], [2 * x, {"k": 2.0}]
    t = a if x > 0 else b
    return t[0] + t[1]["k"] + a[0] + b[0]


@read
def one_of_two_is_returned(x, _):
    o = types.SimpleNamespace(a=[x], b=[2 * x])

    def get():
        if x > 5:
            return o.a
        return o.b

    return get(), o.a, o.b


@read
def lists_that_branches_make(x, _):
    def make(k):
        return [x * k, k]

    rows = make(1.0) if x > 0 else make(2.0)
    if x > 1:
        other = [x]
    else:
        other = [-x]
    rows[0], other[0] = rows[0] + 1, 2.0
    rows.append(other)
    return rows


@read
def lists_that_loops_carry(x, xs):
    a, b, s = [x, 0.0], [1.0], {"n": 0.0}
    while a[0] > 1:
        a = [a[0] / 2, a[1] + 1]
    for y in xs:
        b, s = [b[0] + y], {"n": s["n"] + y}
    a[1] += 5
    a.append(1.0)
    b[0] += 1
    s["new"] = s["n"]
    return a, b, s


@read
def lists_that_blocks_in_blocks_carry(x, _):
    a, b = [x], [2 * x]
    if x > 0:
        while a[0] > 1:
            a, b = b, [a[0] / 4]
        a[0] += 5
        b[0] += 7
    return a, b


@read
def a_name_that_a_branch_may_change(x, _):
    state = {"n": x}
    for i in range(3):
        if x > i:
            state = {"n": state["n"] + i}
        state["n"] = state["n"] * 2
    return state


@read
def attributes(x, _):
    o = types.SimpleNamespace(h=[0.0], log=[])
    if x > 0:
        o.h = [x, x]
    else:
        o.h = [x, -x]
    o.h[0] = o.h[0] * 2
    o.log.append(o.h[0])
    return o.h, o.log


@read
def the_best_so_far(_, xs):
    best, score, rows = [0.0, 0.0], -10.0, []
    for x in xs:
        row = [x, 0.0] if x > 0 else [0.0, x]
        row[0] = row[0] + 1
        rows.append(row)
        if x > score:
            best, score = row, x
    return best, score, rows


@read
def an_attribute_in_a_loop(_, xs):
    o = types.SimpleNamespace(h=[0.0])
    for x in xs:
        h = o.h
        o.h[0] = h[0] * 2 + x
    return o.h[0] + h[0]


@read
def a_helper_reads_one_and_is_done(x, _):
    a, b = [x], [2 * x]

    def get():
        chosen = a if x > 0 else b
        return chosen[0]

    y = get()
    a[0] = 100.0
    return y + a[0]


@read
def a_helper_passes_on_its_own(x, _):
    def go(n, rows):
        if n == 0:
            return rows
        if x > n:
            rows = [*rows[:-1], rows[-1] + x]
        return go(n - 1, rows)

    found = go(3, [0.0, 1.0])
    found[0] = 9.0
    return found


@read
def copies_are_chosen(x, _):
    a, b = [x], [2 * x]
    t = a.copy() if x > 0 else b.copy()
    u = list(a) if x > 0 else list(b)
    t[0], u[0], a[0] = 5.0, 6.0, 7.0
    return t, u, a, b


@read
def a_copy_of_one_is_changed(x, _):
    a, b = [x], [2 * x]
    t = list(a if x > 0 else b)
    t[0] = 5.0
    return t, a, b


@read
def a_test_chooses(x, _):
    a, b, n = [x], [2 * x], 0.0
    while (a if n > 0 else b)[0] > n:
        n += 1.0
    a[0] = n
    return a


@read
def an_operand_chooses(x, _):
    a, b = [x], [2 * x]
    y = x > 0 and sum([(a if x > 1 else b)[0]] * 50) > 0
    a[0] = 5.0
    return y, a


@read
def a_scan_has_run(_, xs):
    rows = first = [0.0]
    for x in xs:
        rows = [rows[0] + x]
    rows[0] += 1
    first[0] = 9.0
    return rows, first


@read
def an_array_of_items(_, xs):
    out = jv.TensorArray(jnp.float32, size=3)
    for i, x in enumerate(xs):
        if x > 0:
            out = out.write(i, x)
        else:
            out = out.write(i, 0.0)
    return out.stack()


@pytest.mark.parametrize("run", [*SAME, *READ], ids=lambda run: run.__name__)
def test_what_is_chosen_is_pythons(run):
    check(run)


def test_the_callers_list_is_not_in_a_program():
    def run(state, x):
        if x > 0:
            state = {**state, "h": state["h"] + x}
        state["n"] = state["n"] + 1
        return state

    step = jv.compile(run, autograph=True)
    for x in (3.0, -3.0):
        assert step({"h": 1.0, "n": 0.0}, x) == run({"h": 1.0, "n": 0.0}, x)


# ---------------------------------------------------------------- changes that others would not see
@refused("big if x > 0 else small")
def a_list_chosen_in_a_scan(_, xs):
    big, small = [0.0], [0.0]
    for x in xs:
        dst = big if x > 0 else small
        dst[0] += x
    return big[0], small[0]


@refused("best")
def a_source_is_changed(x, _):
    a, b = {"n": 1.0}, {"n": 2.0}
    best = a
    if x > 0:
        best = b
    b["n"] = 9.0
    return best["n"]


@refused("best")
def a_copy_gets_a_key(x, _):
    a, b = {"n": 1.0}, {"n": 2.0}
    best = a if x > 9 else b
    if x > 0:
        best = a
    del best["n"]
    best["m"] = 2.0
    return len(a)


@refused("the returned value")
def changed_at_the_end(x, _):
    rows = [x]

    def get():
        try:
            if x > 0:
                return rows
            return [0.0]
        finally:
            rows[0] = x + 100

    return get()[0]


@refused("t")
def a_loop_gives_it_a_name(x, _):
    rows, t = [x], [0.0]
    while x > 0:
        t = rows
        x = x - 1
    rows[0] = 50.0
    return t[0]


@refused("t")
def a_loop_names_it_first(_, xs):
    rows = [0.0]
    for x in xs:
        t = rows
    rows[0] = 40.0
    return t[0]


@refused("out")
def a_loop_is_left_with_it(_, xs):
    rows, out = [0.0], [1.0]
    for x in xs:
        if x < 0:
            out = rows
            break
    out[0] = 30.0
    return rows[0]


@refused("best")
def a_loop_changes_what_it_has_named(_, xs):
    now, best = [0.0], [0.0]
    for x in xs:
        now[0] += x
        if now[0] > best[0]:
            best = now
    return best[0]


@refused("t")
def a_loop_changes_what_a_name_was(_, xs):
    rows = t = [0.0]
    y = 0.0
    for x in xs:
        rows[0] = x
        y += t[0]
        t = [t[0] + 1]
    return y


@refused("a")
def swapped(x, _):
    a, b = p, q = [x], [2 * x]
    if x > 0:
        a, b = b, a
    a[0] = 100.0
    return p[0] + 10 * q[0]


@refused("l")
def an_attribute(x, _):
    o, l = types.SimpleNamespace(l=[x]), [0.0]  # noqa: E741
    if x > 0:
        l = o.l  # noqa: E741
    l[0] = 100.0
    return o.l[0]


@refused("o.l")
def given_to_an_attribute(x, _):
    o, a, b = types.SimpleNamespace(l=[1.0]), [2.0], [3.0]
    if x > 0:
        o.l = a
    else:
        o.l = b
    o.l[0] = 60.0
    return a[0]


@refused("a")
def two_names_of_a_new_list(x, _):
    a, b = [0.0], [1.0]
    if x > 0:
        a = b = [x]
    b[0] = 70.0
    return a[0]


@refused("a if x > 0 else b")
def a_list_in_a_list(x, _):
    a, b = [[x]], [[2 * x]]
    inner = a[0]
    t = a if x > 0 else b
    t[0][0] = 90.0
    return inner[0]


@refused("a if x > 2 else b")
def in_a_branch(x, _):
    a, b = [x], [2 * x]
    if x > 1:
        t = a if x > 2 else b
        t[0] = 90.0
    return a[0]


@refused("c")
def a_copy_of_a_copy(x, _):
    a, c = [x], [0.0]

    def get():
        t = a if x > 0 else [0.0]
        if x > 1:
            return t
        return [1.0]

    if x > 1:
        c = get()
    a[0] = 90.0
    return c[0]


@refused("a if x > 0 else b")
def a_helper_returns_it(x, _):
    a, b = [x], [2 * x]

    def get():
        return a if x > 0 else b

    get()[0] = 80.0
    return a[0]


@refused("a if x > 0 else b")
def a_helper_changes_it(x, _):
    a, b = [x], [2 * x]

    def put():
        (a if x > 0 else b)[0] = 80.0

    put()
    return a[0]


@pytest.mark.parametrize("run", REFUSED, ids=lambda run: run.__name__)
def test_a_change_that_others_would_not_see_is_refused(run):
    message = (
        rf"'{REFUSED[run]}' is a copy after the branch or loop at test_autograph_copies.py:\d+, in "
        r"\w+, on a traced value: .*Choose between copies,\n    rows = first.copy\(\) if"
    )
    with pytest.raises(ControlFlowError, match=message):
        jv.compile(run, autograph=True)(jnp.float32(3.0), jnp.float32(XS))


def test_a_change_is_refused_in_a_function_of_tensors():
    def run(x):
        a, b = [x], [2 * x]
        (a if x > 0 else b)[0] = 5.0
        return a[0]

    with pytest.raises(ControlFlowError, match="'a if x > 0 else b' is a copy after"):
        tf.function(run)(tf.constant(3.0))


def test_an_error_leaves_nothing_behind():
    rows = [1.0]

    def wrong(x):
        t = rows if x > 0 else [x]
        return t[0] @ x

    def right(x):
        rows[0] = 2.0
        return x + rows[0]

    with pytest.raises(ValueError, match="matmul"):
        jv.compile(wrong, autograph=True)(3.0)
    assert jv.compile(right, autograph=True)(3.0) == 5.0
