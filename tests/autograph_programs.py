"""Programs written in plain Python, each to be run eagerly, compiled and differentiated.

A program is a function that makes everything again: it returns the function under test, its
arguments, and the variables that it reads or assigns.
"""

# The programs are as people write them.
# ruff: noqa: B007, B905, C901, F842, PERF401, PIE804

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv

XS = np.array([0.5, -1.0, 2.0, 0.25, -0.75, 3.0], np.float32)
MATRIX = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], np.float32)


class Made(NamedTuple):
    """One instance of a program."""

    run: Callable[..., Any]
    args: tuple[Any, ...]
    variables: tuple[jv.Variable, ...] = ()


PROGRAMS: dict[str, Callable[[], Made]] = {}
NO_GRADIENT: set[str] = set()  # those whose result is a whole number


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def no_gradient(make):
    NO_GRADIENT.add(make.__name__)
    return program(make)


def function(*args, gradient=True):
    """Keep a program without variables: the function itself, and its arguments."""

    def keep(run):
        make = functools.update_wrapper(lambda: Made(run, args), run)
        return (program if gradient else no_gradient)(make)

    return keep


# ---------------------------------------------------------------- integers
@function(27, gradient=False)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@function(48, 18, gradient=False)
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@no_gradient
def fizzbuzz():
    def word(i):
        if i % 15 == 0:
            return 3
        elif i % 5 == 0:
            return 2
        elif i % 3 == 0:
            return 1
        return 0

    def run(n):
        counts = jnp.zeros(4, jnp.int32)
        for i in range(1, n + 1):
            counts = counts.at[word(i)].add(1)
        return counts

    return Made(run, (31,))


@function(np.array([1, 3, 5, 7, 9, 11], np.int32), 9, gradient=False)
def binary_search(xs, wanted):
    low, high = 0, len(xs) - 1
    while low <= high:
        middle = (low + high) // 2
        if xs[middle] == wanted:
            return middle
        if xs[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@no_gradient
def binary_search_without_success():
    made = binary_search()
    return Made(made.run, (made.args[0], 4))


@function(50, gradient=False)
def prime_sieve(n):
    is_prime = jnp.ones(50, bool).at[:2].set(False)
    i = 2
    while i * i < n:
        if is_prime[i]:
            j = i * i
            while j < n:
                is_prime = is_prime.at[j].set(False)
                j += i
        i += 1
    count = 0
    for i in range(n):
        if is_prime[i]:
            count += 1
    return count


@function(1203045, gradient=False)
def digits_backwards(n):
    result = 0
    while n > 0:
        n, digit = n // 10, n % 10
        if not digit:
            continue
        result = result * 10 + digit
    return result


# ---------------------------------------------------------------- numbers
@function(2.0)
def newton_root(x):
    y = x
    for _ in range(50):
        new = (y + x / y) / 2
        if abs(new - y) < 1e-6:
            break
        y = new
    return y


@function(7.0)
def newton_with_a_bound(x):
    y = x
    while abs(y * y - x) > 1e-4:
        jv.autograph.set_loop_options(max_iterations=30)
        y = (y + x / y) / 2
    return y


@program
def bisection():
    def f(x):
        return x * x * x - x - 2

    def run(low, high):
        while high - low > 1e-3:
            jv.autograph.set_loop_options(max_iterations=20)
            middle = (low + high) / 2
            if f(middle) * f(low) > 0:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    return Made(run, (1.0, 2.0))


@function(MATRIX)
def power_iteration(matrix):
    v = jnp.ones(3) / jnp.sqrt(3.0)
    value = 0.0
    for _ in range(100):
        w = matrix @ v
        new = jnp.linalg.norm(w)
        v = w / new
        if abs(new - value) < 1e-4:
            break
        value = new
    return value


@function(3.0)
def early_exits(x):
    if x < 0:
        return -x
    if x > 10:
        if x > 100:
            return x * 0.01
        return x * 0.1
    return x * x


@function(XS, 1.5)
def early_exit_from_a_scan(xs, limit):
    total = 0.0
    for x in xs:
        if x > limit:
            return total * x
        total = total + x * x
    return total


@function(MATRIX)
def early_exit_from_two_loops(rows):
    for row in rows:
        for x in row:
            if x > 3:
                return x * 2
    return -1.0


@function(XS, 1.5)
def find_with_else(xs, limit):
    for i, x in enumerate(xs):
        if x > limit:
            break
    else:
        return jnp.float32(-1.0)
    return x * i


@function(XS)
def loop_without_break_and_else(xs):
    total = 0.0
    for x in xs:
        if x > 100:
            break
        total += x
    else:
        total = total * 2
    return total


@function(1.0, 2.0)
def logic(x, y):
    inside = 0 < x < 2 and not y > 5
    outside = x > 9 or y > 9 or (x == 1 and y == 1)
    return (x if inside else y) + (1.0 if outside else 0.5 * x)


@no_gradient
def conditions_are_evaluated_when_they_are_needed():
    calls = jv.Variable(0)

    def asks(x):
        calls.assign_add(1)
        return x > 0

    def run(x):
        a = asks(x) and asks(-x) and asks(x)
        b = asks(-x) or asks(x) or asks(x)
        return (1 if a else 0) + (2 if b else 0)

    return Made(run, (1.0,), (calls,))


@program
def mandelbrot():
    def escape(re, im):
        x = y = 0.0
        for n in range(20):
            x, y = x * x - y * y + re, 2 * x * y + im
            if x * x + y * y > 4:
                break
        return x * x + y * y, n

    def run(re, im):
        return escape(re, im)

    return Made(run, (0.4, 0.5))


@function(jnp.asarray(XS))
def bubble_sort(xs):
    swapped = True
    while swapped:
        jv.autograph.set_loop_options(max_iterations=8)
        swapped = False
        for i in range(len(xs) - 1):
            if xs[i] > xs[i + 1]:
                a, b = xs[i], xs[i + 1]
                xs = xs.at[i].set(b).at[i + 1].set(a)
                swapped = True
    return xs[0] * 2 + xs[-1]


@program
def game_of_life():
    def step(board):
        around = sum(
            jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j
        )
        return jnp.where((around == 3) | ((board == 1) & (around == 2)), 1, 0)

    def run(board, n):
        for _ in range(n):
            new = step(board)
            if (new == board).all():
                break
            board = new
        return board

    board = np.zeros((5, 5), np.int32)
    board[2, 1:4] = 1
    return Made(run, (board, 3))


NO_GRADIENT.add("game_of_life")


@function(MATRIX)
def beam_search(scores):
    beam = jnp.zeros(2)
    paths = jnp.zeros((2, 3), jnp.int32)
    for t, row in enumerate(scores):
        totals = beam[:, None] + row[None, :]
        best, chosen = jax.lax.top_k(totals.reshape(-1), 2)
        parents, words = chosen // 3, chosen % 3
        paths = paths[parents].at[:, t].set(words)
        if best[0] > 100:
            beam = best * 0.5
        else:
            beam = best
    return beam, paths


# ---------------------------------------------------------------- structures
@function(XS)
def lists_grow(xs):
    states, h = [], 0.0
    for x in xs:
        h = jnp.tanh(h + x)
        states.append(h)
    return jnp.stack(states), len(states), states[-1]


@function(MATRIX)
def lists_grow_in_nested_loops(rows):
    out, starts = [], []
    for row in rows:
        parts = []
        for x in row:
            parts.append(x * 2)
            out.append(x)
        starts.append(parts[0])
    return jnp.stack(out), starts


@function(XS)
def lists_grow_in_both_branches(xs):
    out = []
    for x in xs:
        if x > 0:
            out.append(x)
        else:
            out.append(-x)
    return out


@function(XS, {"a": XS[:2], "b": XS[2:]})
def zips_and_dicts(xs, tree):
    total = 0.0
    for x, y in zip(xs, reversed(xs)):
        if x < y:
            continue
        total += x * y
    for name, value in sorted(tree.items()):
        if name == "a":
            total += value.sum() if total > 0 else value.min()
    for i, leaf in enumerate([tree["a"], tree["b"]]):
        total += i * leaf.sum()
    return {"total": total, "tree": tree}


@function(3.0)
def a_dict_changes_in_branches(x):
    stats = {"low": 0.0, "high": 0.0}
    if x > 1:
        stats["high"] = stats["high"] + x
    else:
        stats["low"] = x
        stats["high"] = -x
    return stats


@program
def attributes_change_in_branches_and_loops():
    class Filter:
        def __init__(self):
            self.__gain = 2.0
            self.last = 0.0

        def step(self, x):
            if x > 0:
                self.last = self.last + x * self.__gain
            return self.last

    def run(xs):
        filter_ = Filter()
        for x in xs:
            filter_.step(x)
            filter_.last = filter_.last * 0.5
        return filter_.last

    return Made(run, (list(XS),))


@function(2.0, "wide")
def python_stays_python(x, mode):
    sizes = []
    for i in range(3):
        if mode == "wide" and i % 2 == 0:
            sizes.append(i + 1)
    if not sizes:
        raise ValueError("no sizes")
    return jnp.ones(sum(sizes)) * x


@function(jnp.asarray(XS))
def builtins_of_traced_values(xs):
    low, high = min(xs), max(xs[0], 0.1, xs[1])
    flags = any(x > 2 for x in xs), all(x > 2 for x in xs), bool(xs[0])
    numbers = int(xs[2] * 1.5), float(xs[3]), abs(xs[1]), round(xs[5] * 0.9)
    return low, high, [1 if f else 0 for f in flags], numbers, sum(xs), sorted(xs)[0]


# ---------------------------------------------------------------- functions
@program
def functions_of_all_kinds():
    def scaled(x, *rest, factor=2.0, **words):
        if x > 1:
            return x * factor + sum(rest)
        return words.get("other", 0.0) * x

    def run(x):
        twice = functools.partial(scaled, factor=4.0)
        clip = lambda y: y if y < 5 else 5.0  # noqa: E731

        def inner(z, *, k=3):
            nonlocal count
            count += 1
            while z < k:
                jv.autograph.set_loop_options(max_iterations=10)
                z = z + 1
            return z

        count = 0
        total = scaled(x, 1.0, *[2.0, 3.0], **{"other": 7.0}) + twice(x) + clip(x * 3)
        total = total + inner(x) + inner(x, k=4)
        return total * count

    return Made(run, (1.5,))


@program
def methods_and_super():
    class Base(jv.Module):
        def __init__(self):
            self.scale = jv.Variable(2.0)

        def __call__(self, x):
            if x > 0:
                return self.scale * x
            return x

        @property
        def doubled(self):
            return self.scale * 2

        @staticmethod
        def clip(x):
            return x if x < 3 else 3.0

    class Derived(Base):
        def __call__(self, x):
            y = super().__call__(x)
            while y > 1:
                jv.autograph.set_loop_options(max_iterations=6)
                y = y / 2
            return self.clip(y) + self.doubled

    model = Derived()
    return Made(lambda x: model(x), (3.0,), model.variables)


@program
def recursion_of_python():
    def tree_sum(tree, sign):
        if isinstance(tree, dict):
            return sum(tree_sum(tree[name], -sign) for name in sorted(tree))
        return sign * (tree if tree > 0 else 0.5 * tree)

    def run(x):
        return tree_sum({"a": x, "b": {"c": -x, "d": x * 2}}, 1.0)

    return Made(run, (2.0,))


@program
def functions_passed_to_jax():
    def relu(x):
        return x if x > 0 else 0.1 * x

    def smaller(x, y):
        return x if x < y else y

    def run(xs):
        slopes = [jax.grad(relu)(x) for x in xs]
        return slopes, functools.reduce(smaller, map(relu, xs))

    return Made(run, (jnp.asarray(XS),))


@function(2.0)
def with_and_try(x):
    log = []
    try:
        with jax.named_scope("part"):
            y = x * 2 if x > 1 else x
        log.append("tried")
        {}["missing"]
    except KeyError as error:
        log.append(str(error))
        y = y + 1
    finally:
        log.append("done")
    return y * len(log)


@function(5.0)
def walrus_and_format(x):
    steps = 0
    while (half := x / 2) > 0.3:
        jv.autograph.set_loop_options(max_iterations=10)
        x, steps = half, steps + 1
    if (y := x * 3) > 0.5:
        y = y + steps * len(f"{jnp.shape(y)=}")
    return y


@function(0.4)
def walrus_in_a_test_that_its_branch_assigns(x):
    assert (least := x - 9) < 0  # noqa: RUF018
    if (y := x * 2) > 1:
        y = y + 1
        return y * y
    while x < 3:
        if 0 < (y := x * 2) < 4:
            y += 1
            x = x + y
        x = x + 1
    return x - least


@function(0.4)
def every_way_that_goes_on_sets_it(x):
    total = 0.0
    for a in (x, 2 * x, 3 * x, 4 * x, 9 * x):
        if a > 3:
            y = 1.0
        elif a > 1.5:
            break
        elif a > 1:
            continue
        else:
            y = a * 2
        total = total + y
    if x > 2:
        z = 1.0
    elif x > 1:
        if x > 1.5:
            return total
        return 2 * total
    else:
        z = 3 * x
    return total + z


# ---------------------------------------------------------------- variables
@program
def assign_in_one_branch():
    v = jv.Variable(1.0, name="v")
    hits = jv.Variable(0, name="hits")

    def run(x):
        if x > 0:
            v.assign_add(x)
            if x > 1:
                hits.assign_add(1)
        return v * x

    return Made(run, (2.0,), (v, hits))


@program
def nested_control_flow_with_variables():
    v = jv.Variable(0.0, name="v")
    count = jv.Variable(0, name="count")

    def run(xs):
        best = -1.0
        for x in xs:
            k = 0
            while k < 3 and x > 0:
                jv.autograph.set_loop_options(max_iterations=3)
                v.assign(v * 0.5 + x)
                k += 1
                if v > 2:
                    count.assign_add(1)
                    break
            if v > best:
                best = v.value
        return best * 2

    return Made(run, (XS,), (v, count))


@program
def running_statistics():
    n = jv.Variable(0.0, name="n", trainable=False)
    mean = jv.Variable(0.0, name="mean", trainable=False)
    spread = jv.Variable(0.0, name="spread", trainable=False)

    def run(xs):
        for x in xs:
            if x < -0.9:
                continue
            n.assign_add(1.0)
            delta = x - mean
            mean.assign_add(delta / n)
            spread.assign_add(delta * (x - mean))
        return spread / n

    return Made(run, (XS,), (n, mean, spread))


@program
def recurrent_cell():
    class Cell(jv.Module):
        def __init__(self):
            self.w = None
            self.u = jv.Variable(0.5 * jnp.eye(2))

        def __call__(self, h, x):
            if self.w is None:
                self.w = jv.Variable(jnp.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]))
            return jnp.tanh(h @ self.u + x @ self.w)

    cell = Cell()
    cell(jnp.zeros(2), jnp.zeros(3))

    def run(xs):
        h = jnp.zeros(2)
        outputs = []
        for x in xs:
            h = cell(h, x)
            if h.sum() > 1:
                h = h / 2
            outputs.append(h)
        return jnp.stack(outputs), h

    return Made(run, (MATRIX,), cell.variables)


@program
def clipped_training_step():
    w = jv.Variable([0.5, -0.5, 1.0], name="w")
    skipped = jv.Variable(0, name="skipped")

    def run(x, y):
        with jv.GradientTape() as tape:
            loss = jnp.mean((x @ w - y) ** 2)
        g = tape.gradient(loss, w)
        norm = jnp.sqrt((g * g).sum())
        if norm > 1.0:
            g = g / norm
            if norm > 50:
                skipped.assign_add(1)
                g = g * 0
        w.assign_sub(0.1 * g)
        return loss, norm

    return Made(run, (MATRIX, XS[:3]), (w, skipped))


@program
def learning_rate_schedule():
    step = jv.Variable(0, name="step")
    w = jv.Variable(3.0, name="w")

    def rate(n):
        if n < 2:
            return 0.1 * (n + 1)
        elif n < 5:
            return 0.1
        return 0.1 / (n - 3)

    def run(x):
        lr = rate(step)
        w.assign_sub(lr * w * x)
        step.assign_add(1)
        return w * lr

    return Made(run, (0.5,), (step, w))


@program
def rejection_sampling():
    seed = jv.Variable(1, name="seed")

    def draw():
        seed.assign((seed * 1103 + 12345) % 65536)
        return seed / 65536

    def run(limit):
        tries = 1
        while (x := draw()) > limit:
            tries += 1
        return x, tries

    return Made(run, (0.05,), (seed,))


@program
def conditions_are_variables():
    active = jv.Variable(True, name="active", trainable=False)
    level = jv.Variable(2.0, name="level")

    def run(x):
        if active:
            active.assign(False)
            y = x * level
        else:
            y = x + level
        while level > 1:
            jv.autograph.set_loop_options(max_iterations=4)
            level.assign(level / 2)
        return y if not active else -y

    return Made(run, (3.0,), (active, level))


@program
def variables_keep_their_names():
    a = jv.Variable(1.0, name="a")
    b = jv.Variable(2.0, name="b")

    def run(x):
        v = a
        for _ in range(2):
            if x > 0:
                v = b
            x = x + v
        w = a
        w.assign_add(1.0)
        return x

    return Made(run, (1.0,), (a, b))


@program
def an_epoch_in_a_loop():
    w = jv.Variable([0.5, -0.5, 1.0], name="w")
    best = jv.Variable(100.0, name="best", trainable=False)

    def run(xs, ys):
        losses = []
        for x, y in zip(xs, ys):
            with jv.GradientTape() as tape:
                loss = (x @ w - y) ** 2
            w.assign_sub(0.01 * tape.gradient(loss, w))
            if loss < best:
                best.assign(loss)
            losses.append(loss)
        return jnp.stack(losses).mean()

    return Made(run, (MATRIX, XS[:3]), (w, best))


# ---------------------------------------------------------------- corners of Python
@function(2.0)
def inner_functions_see_later_values(x):
    n, k = 0.0, 1.0

    def add(d):
        nonlocal n
        n = n + d

    scale = lambda y: y * k  # noqa: E731
    if x > 1:
        k = 5.0
        add(x)
    else:
        add(-x)
    while n < 9:
        jv.autograph.set_loop_options(max_iterations=20)
        add(1.0)
    return scale(x) + n


@function(2.0)
def classes_inside(x):
    class Scaled:
        factor = 3 if x is not None else 4

        def apply(self, y):
            return y if y > 1 else -y

    return Scaled().apply(x) * Scaled.factor


@program
def returns_from_with_and_try():
    def inside_with(xs):
        with jax.named_scope("outer"):
            for x in xs:
                with jax.named_scope("inner"):
                    if x > 2:
                        return x
                    if x > 1:
                        continue
        return -1.0

    def inside_try(xs):
        try:
            for x in xs:
                if x > 1:
                    return x
        finally:
            done.append(1)
        return 0.0

    def inside_except(x):
        try:
            if x > 1:
                return x
            {}["missing"]
        except KeyError:
            return -x
        return 0.0

    done = []

    def run(xs):
        return inside_with(xs) + inside_try(xs) * inside_except(xs[0])

    return Made(run, (XS,))


@function(2.0)
def unpacking_and_deleting(x):
    (a, b), *rest = (x, x * 2), x * 3, x * 4
    if a < b:
        a, (b, rest) = b, (a, rest)
    y = a
    z = y
    del y
    if z > 1:
        y = z
    else:
        y = 0.0
    d = {"a": x, "l": [1.0, x]}
    if x > 1:
        d["a"] += 2
        d["l"][0] = x
    return a, b, rest, y, d


@function(2.0)
def comprehensions(x):
    items = [i * x if i % 2 else x for i in range(4)]
    named = {n: (v if v > 1 else 0.0) for n, v in zip("abcd", items)}
    return sum(v for v in items), named, max({len(n) for n in named})


@function(XS)
def generators_inside(xs):
    def pairs(values):
        for i in range(3):
            yield values[i], values[i + 1]

    total = 0.0
    for a, b in pairs(xs):
        if a < b:
            total += a * b
    return total


@function(XS, XS * 2)
def tuples_are_carried(xs, ys):
    best = (0.0, 0.0)
    for pair in zip(xs, ys):
        if pair[1] > best[1]:
            best = pair
    a, b = best
    return a + b


@function(5, gradient=False)
def loops_in_loops(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 2:
                continue
            k = j
            while k > 0:
                k -= 1
                if k == 5:
                    break
                total += k
            else:
                total += 100
    return total


@function(10, gradient=False)
def imports_and_annotations(n, /, start: int = 1, *, step=2):
    from operator import add as plus

    total: int = start
    text: str
    while total < n:
        total = plus(total, step)
    return total
