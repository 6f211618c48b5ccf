"""`is`, `isinstance`, `type`, `in` and strings, of what a branch or loop has made traced."""

# The programs are as people write them.
# ruff: noqa: E721, RUF034, SIM103, UP031, UP032

from __future__ import annotations

import gc
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.autograph.operators import origins
from jaxvars.errors import CheckError, ControlFlowError


def until_done(x):
    done, count = False, 0
    while done is not True and count < 51:
        x, count = x + 1, count + 1
        if x > 5:
            done = True
    return count


def flag_of_a_loop(x):
    found = False
    for bound in (1, 2, 3):
        if x > bound:
            found = True
    return (1 if found is True else 0) + (10 if found is False else 0)


def flag_of_a_function(x):
    def is_large(x):
        if x > 2:
            return True
        return False

    return 10 if is_large(x) is True else 20


def type_of_a_branch(x):
    n = 1 if x > 0 else 2
    is_number = isinstance(n, (int, float)) and not isinstance(n, (jax.Array, float))
    return 5 if is_number and type(n) is int and type(n) != bool else 6


def type_where_ways_agree(x):
    if x > 0:
        n = 1
    else:
        n = x
    return 1 if isinstance(n, (str, dict)) else 2


def type_after_a_scan(x):
    total = 0.0
    for row in jnp.stack([x, x]):
        total = total + row
    return 1 if isinstance(total, float) else 2


def type_where_a_loop_stays(x):
    n = 0
    while x < 5:
        x = x + 1
        if isinstance(n, int):
            n = 3
    return n


def identity_of_objects(x):
    sentinel = object()
    y = x if x > 0 else 2.0 * x
    return 1 if y is sentinel or y is None or y is not y or y is x[None] else 2


def members(x):
    n = 1 if x > 0 else 2
    places = ({1, 3}, {2: 1}, {0: 1}.values(), np.array([1, 5]), deque([2]), frozenset(), (1, 2))
    return sum((1 if n in place else 0) * 10**i for i, place in enumerate(places))


def notes_in_errors(x):
    n = 1 if x > 0 else 2
    if x > 100:
        raise ValueError(f"no {n}" + str(n) + "{}".format(n) + "%s" % n)
    assert x < 200, f"{n}"
    return n


ANSWERED = [
    until_done, flag_of_a_loop, flag_of_a_function, type_of_a_branch, type_where_ways_agree,
    type_after_a_scan, type_where_a_loop_stays, identity_of_objects, members, notes_in_errors,
]  # fmt: skip


@pytest.mark.parametrize("run", ANSWERED)
def test_the_answer_is_that_of_python(run):
    compiled = jv.compile(run, autograph=True)
    for number in (0.0, 3.5):
        assert int(compiled(jnp.float32(number))) == run(jnp.float32(number))


def test_the_answer_is_that_of_python_to_users_of_tensors_too():
    from jaxvars import tf

    assert int(tf.function(until_done)(tf.constant(0.0))) == 6


def count(x):
    n = 0
    while x < 5:
        x, n = x + 1, n + 1
    return type(n) is int


def computed(x):
    n = 1 if x > 0 else 2
    return isinstance(n + 1, int)


def one_of_two(x):
    n = 1 if x > 0 else x
    return isinstance(n, jax.Array)


def changed_by_a_loop(x):
    n = 0
    while x < 5:
        x = x + 1
        n = x * 2 if isinstance(n, int) else x * 3
    return n


def same_array(x):
    last, same = x, 0
    while x < 5:
        if last is x:
            same = same + 1
        last = x = x + 1
    return same


def same_number(x):
    n = 1 if x > 0 else 2
    return n is int("1")


def a_key(x):
    n = 1 if x > 0 else 2
    return {f"k{n}": x}


def a_name(x):
    y = x if x > 0 else -x
    return {f"{y}": x}


def a_message(x):
    for i in range(jnp.asarray(3) + x.astype(int)):
        print("step %s" % i)
    return x


REFUSED = {
    count: r"type\(\) at test_origins.py:\d+, in count .*its type is int or jax.Array",
    computed: r"isinstance\(\) at test_origins.py:\d+, in computed .*its type is int or jax.Array",
    one_of_two: r"isinstance\(\) at .*in one_of_two .*its type is int or jax.Array",
    changed_by_a_loop: r"isinstance\(\) at .*in changed_by_a_loop .* int or jax.Array",
    same_array: r"`is` at test_origins.py:\d+, in same_array .*of type jax.Array.*`if done:",
    same_number: r"`is` at test_origins.py:\d+, in same_number .*of type int .*`n == 3`",
    a_key: r"made a string at test_origins.py:\d+, in a_key .*type is int; here .*print\(",
    a_name: r"made a string at test_origins.py:\d+, in a_name .*jax.Array; here",
    a_message: r"made a string at test_origins.py:\d+, in a_message .*type is int or jax.Array",
}


@pytest.mark.parametrize("run", REFUSED)
def test_what_is_not_known_is_refused_with_the_line(run):
    with pytest.raises(ControlFlowError, match=f"(?s){REFUSED[run]}"):
        jv.compile(run, autograph=True)(jnp.asarray(1.0))


@pytest.mark.parametrize(
    "text", [lambda n: str(n), lambda n: repr(n), lambda n: format(n), lambda n: "{}".format(n),
             lambda n: "%s %s" % (n, 1)]
)  # fmt: skip
def test_other_ways_to_make_a_string_are_refused(text):
    @jv.autograph.convert
    def run(x):
        return text(1 if x > 0 else 2)

    assert run(1.0)[0] == "1"
    with pytest.raises(ControlFlowError, match=r"A value is made a string at test_origins\.py"):
        jax.jit(lambda x: (run(x), x)[1])(1.0)


def test_what_a_function_is_called_with_is_an_array():
    @jv.compile(autograph=True)
    def run(n, x):
        y = jnp.asarray(n) if isinstance(n, int) else x
        while y < 5:
            y = y + 1
        return y + 100 if isinstance(n, int) or n is True or type(n) is int else y, f"{x} {n}"

    assert float(run(3, 1.0)[0]) == 5


def test_the_note_of_an_error_may_name_what_is_traced():
    with pytest.raises(CheckError, match="ValueError: no "):
        jv.compile(notes_in_errors, autograph=True)(jnp.asarray(101.0))


def test_nothing_is_kept_of_a_trace():
    before = {*origins._ORIGINS, *map(id, origins._WITH_BLOCKS)}
    jv.compile(until_done, autograph=True)(jnp.asarray(0.0))
    gc.collect()
    assert before.issuperset({*origins._ORIGINS, *map(id, origins._WITH_BLOCKS)})


def _assign(v, _, x):
    v.assign(x)


def _add_in_place(v, _, x):
    v += x


def _assign_in_a_list(v, w, x):
    rows = [v] if x > 0 else [w]
    rows[0].assign_add(x)


def _add_in_a_loop(v, w, x):
    while x > 0:
        v, x = w, x - 1
    v += 1.0


@pytest.mark.parametrize("change", [_assign, _add_in_place, _assign_in_a_list, _add_in_a_loop])
def test_a_variable_that_a_block_has_chosen_is_not_assigned(change):
    v, w = jv.Variable(1.0), jv.Variable(2.0)

    def run(x):
        if change in (_assign_in_a_list, _add_in_a_loop):
            change(v, w, x)
        else:
            change(v if x > 0 else w, w, x)
        return x

    message = (
        r"A Variable is assigned, .*, at test_origins.py:\d+, in _\w+, that a branch or loop on a "
        r"traced value has chosen: (.|\n)*first.assign_add\(x\)(.|\n)*: y = y \+ x"
    )
    with pytest.raises(ControlFlowError, match=message):
        jv.compile(run, autograph=True)(3.0)


def test_the_value_of_a_variable_that_a_block_has_chosen():
    v, w = jv.Variable(1.0), jv.Variable(2.0)

    def run(x):
        y = v if x > 0 else w
        y = y + x
        y += 1.0
        z = v if x > 0 else v
        z += x
        for i in range(2):
            if x > i:
                w.assign_add(x)
        return y, z + 0.0, w + 0.0

    assert jv.compile(run, autograph=True)(3.0) == (5.0, 4.0, 8.0)
    with pytest.raises(AttributeError, match="no attribute missing"):
        jv.compile(lambda x: (v if x > 0 else w).missing, autograph=True)(3.0)
