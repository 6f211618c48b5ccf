"""Typical mistakes, as programs: what each raises, the words that teach, and the cure."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A program, and what it raises.

    Attributes:
        program: the cell; names that `SETUP` made are there.
        error: the name of the exception.
        words: what the message holds.
        cure: the program as the message corrects it, which runs.
    """

    program: str
    error: str
    words: tuple[str, ...]
    cure: str = ""


SETUP = """
import jax, jax.numpy as jnp, numpy as np, jaxvars as jv, optax
x, v = jnp.ones(3), jv.Variable(jnp.ones(3), name="w")
class Model(jv.Module):
    def __init__(self):
        self.w = jv.Variable(1.0, name="w")
    def __call__(self, x):
        return x * self.w
model, kept = Model(), []
loss = lambda: model(2.0)
"""

_IN_F = "@jv.compile\ndef f(x, n=2):\n    return {}\nf(x)"  # an expression in a compiled function

MISTAKES = {
    "if": Mistake("@jv.compile\ndef f(n):\n    if n > 0:\n        return n\n    return -n\nf(x[0])",
        "ControlFlowError", ("Python's `if`", "Cell In[1], line 3, in f", "autograph=True",
        "jv.cond("),
        cure="@jv.compile(autograph=True)\ndef f(n):\n    if n > 0:\n        return n\n"
        "    return -n\nassert f(x[0]) == 1"),
    "range": Mistake("@jv.compile\ndef f(n):\n    return [0 for i in range(n)]\nf(3)",
        "ControlFlowError", ("needs to know a number", "line 3", "static_argnames",
        "jv.fori_loop("),
        cure="@jv.compile(static_argnames='n')\ndef f(n):\n    return [0 for i in range(n)]\n"
        "assert len(f(3)) == 3"),
    "zeros": Mistake("@jv.compile\ndef f(n):\n    return jnp.zeros(n)\nf(3)", "ControlFlowError",
        ("needs to know a number", "line 3", "or a shape", "static_argnames"),
        cure="@jv.compile(static_argnames='n')\ndef f(n):\n    return jnp.zeros(n)\nf(3)"),
    "NumPy": Mistake("@jv.compile\ndef f(x):\n    return np.sin(x)\nf(x)", "ControlFlowError",
        ("NumPy at Cell In[1], line 3, in f", "jnp.sin(x)    # not: np.sin(x)", "pure_callback"),
        cure="@jv.compile\ndef f(x):\n    return jnp.sin(x)\nf(x)"),
    "numpy()": Mistake("@jv.compile\ndef f():\n    return v.numpy()\nf()", "ControlFlowError",
        ("NumPy at Cell In[1], line 3", "`v.numpy()`", "use NumPy outside"),
        cure="@jv.compile\ndef f():\n    return v + 0\nnp.asarray(f())"),
    "leaked tracer": Mistake("@jv.compile\ndef f(n):\n    kept.append(n)\nf(1.0)\nkept[0] + 1",
        "UnexpectedTracerError", ("was f at Cell In[1], line 1 traced for jv.compile",)),
    "state in an attribute": Mistake("class Average(jv.Module):\n    def __init__(self):\n"
        "        self.mean = 0.0\n    @jv.compile\n    def step(self, x):\n"
        "        self.mean = 0.9 * self.mean + 0.1 * x\n        return self.mean\n"
        "Average().step(1.0)",
        "CompileError", ("self.mean of Average is assigned at Cell In[1], line 6, in step",
        "would stay what it was at the first call", "self.mean = jv.Variable(0.0)    # in __init__",
        "self.mean.assign(0.9 * self.mean + 0.1 * x)    # not: self.mean = 0.9 * self.mean + 0.1"),
        cure="class Average(jv.Module):\n    def __init__(self):\n"
        "        self.mean = jv.Variable(0.0)\n    @jv.compile\n    def step(self, x):\n"
        "        self.mean.assign(0.9 * self.mean + 0.1 * x)\n        return self.mean + 0\n"
        "average = Average()\nassert [round(float(average.step(1.0)), 3) for _ in range(3)] == "
        "[0.1, 0.19, 0.271]"),
    "state of optax in an attribute": Mistake("rule = optax.adam(0.1)\nmodel.state = rule.init("
        "model.w.value)\n@jv.compile\ndef step(g):\n"
        "    updates, model.state = rule.update(g, model.state)\n    return updates\nstep(1.0)",
        "CompileError", ("model.state of Model is assigned at Cell In[1], line 5, in step",
        "model.state = jv.variables(", "model.state.assign(new)    # what it is now"),
        cure="rule = optax.adam(0.1)\nmodel.state = jv.variables(rule.init(model.w.value))\n"
        "@jv.compile\ndef step(g):\n    updates, new = rule.update(g, model.state.value)\n"
        "    model.state.assign(new)\n    return updates\nstep(1.0)\nstep(1.0)"),
    "a list in verify": Mistake("@jv.compile\ndef f(n):\n    kept.append(n)\n    return n\n"
        "jv.debugging.verify(f, 1.0)", "CheckError", (("The global kept is changed at Cell In[1], "
        "line 3, in f"), "do it outside: kept.append(n)"),
        cure="f = jv.compile(lambda n: n)\njv.debugging.verify(f, 1.0)\nkept.append(f(1.0))"),
    "the user's own": Mistake('@jv.compile\ndef f(x):\n    raise KeyError("mine")\nf(x)',
        "KeyError", ("mine",)),
    "shapes in a function": Mistake("@jv.compile\ndef f(x):\n    return x @ jnp.ones((2, 2))\nf(x)",
        "TypeError", ("(2,)", "(3,)")),
    "a second creation": Mistake("@jv.compile\ndef f(x):\n    return jv.Variable(x) + 0\nf(x)",
        "CreationError", ("created", "self.w"),
        cure="w = jv.Variable(x)\n@jv.compile\ndef f(x):\n    return w + 0\nf(x)"),
    "write in jit": Mistake("jax.jit(lambda x: v.assign(x))(x)", "ForeignTransformError", ("'w'",
        "Use @jv.compile instead of jax.jit", "jv.functionalize"),
        cure="jv.compile(lambda x: v.assign(x))(x)\n"
        "pure = jv.functionalize(lambda x: v.assign_add(x))\n"
        "result, state = jax.vmap(pure, in_axes=(None, 0))(jv.State.of(v), jnp.ones((2, 3)))"),
    "a tape used twice": Mistake(
        "with jv.GradientTape() as tape:\n    y = v * 2\ntape.gradient(y, v)\ntape.gradient(y, v)",
        "TapeError", ("persistent=True",),
        cure="with jv.GradientTape(persistent=True) as tape:\n    y = v * 2\ntape.gradient(y, v)\n"
        "tape.gradient(y, v)"),
    "a number watched": Mistake("jv.GradientTape().watch(2.0)", "TapeError",
        ("x = jnp.asarray(x); tape.watch(x)",)),
    "smaller": Mistake("v.assign(jnp.ones(2))", "ShapeError", ("(2,)", "'w' of shape (3,)",
        "Assign a part: v[:2].assign(value)"), cure="v[:2].assign(jnp.ones(2))"),
    "larger": Mistake("v.assign(jnp.ones(4))", "ShapeError", ("the part of the value that fits",)),
    "to be broadcast": Mistake("v.assign(jnp.ones(1))", "ShapeError",
        ("jnp.broadcast_to(value, (3,))",), cure="v.assign(jnp.broadcast_to(jnp.ones(1), (3,)))"),
    "to be reshaped": Mistake("v.assign(jnp.ones((3, 1)))", "ShapeError",
        ("jnp.reshape(value, (3,))",)),
    "several values": Mistake("jv.Variable([1, 1], [2, 3])", "TypeError", ("one value",
        "Cell In[1], line 1", "jv.Variable([[1, 1], [2, 3]])"),
        cure="jv.Variable([[1, 1], [2, 3]])"),
    "an operand": Mistake("v @ jnp.ones(2)", "TypeError", ("(3,) and (2,)",
        "The Variable 'w' is float32[3]")),
    "PyTorch's words": Mistake("v.detach()", "AttributeError",
        ("Use jax.lax.stop_gradient(v.value)",)),
    "NumPy's words": Mistake("jv.zeros(2)", "AttributeError", ("Use jnp.zeros.",)),
    "a float for integers": Mistake('jv.Variable(1, name="n").assign(0.5)', "DtypeError",
        ("Cannot assign a Python float to variable 'n' of dtype int32",
        "jnp.round(value).astype('int32')"),
        cure="jv.Variable(1).assign(jnp.round(0.5).astype('int32'))"),
    "None": Mistake("v.assign(None)", "NotATensorError", ("NoneType, which is not a tensor",)),
    "ragged": Mistake("jv.Variable([[1, 2], [3]])", "NotATensorError",
        ("its rows have 2 and 1 elements", "Pad")),
    "an unknown size": Mistake("jv.Variable(jnp.ones((2, 2)), shape=(None, 2))", "ShapeError",
        ("has an unknown size, None", "(2, 2)"), cure="jv.Variable(jnp.ones((2, 2)))"),
    "value =": Mistake("v.value = 2.0", "AttributeError", ("'w'", "write v.assign(new)")),
    "no such device": Mistake('with jv.device("gpuu"):\n    pass', "DeviceError", ("'gpuu'",
        "there are: CPU:0")),
    "a typo": Mistake("jv.Varible", "AttributeError", ("Did you mean 'Variable'",)),
    "a typo in a method": Mistake("v.assignadd", "AttributeError", ("Did you mean 'assign_add'",)),
    "gradients last": Mistake("jv.optimizers.SGD(0.1).apply_gradients([(v, x)])", "TypeError",
        ("Gradients come first: apply_gradients(zip(gradients, variables))",),
        cure="jv.optimizers.SGD(0.1).apply_gradients(zip([x], [v]))"),
    "two arguments": Mistake("jv.optimizers.SGD(0.1).apply_gradients([v], [x])", "TypeError",
        ("one argument", "Write apply_gradients(zip(gradients, variables))"),
        cure="jv.optimizers.SGD(0.1).apply_gradients(zip([x], [v]))"),
    "a gradient of another shape": Mistake("jv.optimizers.SGD(0.1).apply_gradients([(x[:2], v)])",
        "ShapeError", ("gradient of variable 'w' has shape (2,)", "in the same order")),
    "truth": Mistake("bool(v)", "ValueError", ("ambiguous", "jnp.any(v)")),
    "an index": Mistake("v[7]", "IndexError", ("'w' of shape (3,)", "out of bounds")),
    "an array that is called": Mistake(_IN_F.format("v.value() + x"), "TypeError",
        ("read by v.value, without ()",), _IN_F.format("v.value + x")),
    "values for functions": Mistake(_IN_F.format("jv.cond(x[0] > 0, x, -x)"), "ControlFlowError",
        ("take functions", "Write it as in jv.cond(x > 0, lambda: x, lambda: -x)"),
        _IN_F.format("jv.cond(x[0] > 0, lambda: x, lambda: -x)")),
    "a name for an array": Mistake("with jv.GradientTape():\n    v = v + 1\n    v.assign(x)",
        "AttributeError", ("Write v.assign(v + 1), or v += 1",),
        "v.assign(v + 1)\nv += 1\nv.assign(x)"),
    "numpy() of an array": Mistake("with jv.GradientTape():\n    (v + 1).numpy()", "AttributeError",
        ("np.asarray(x)",), "np.asarray(v + 1)"),
    "a traced key": Mistake(_IN_F.format("{2: x}[n]"), "TypeError",
        ("Name the argument in static_argnames",),
        "jv.compile(lambda n: jnp.asarray([10, 20])[n])(1)"),
    "a traced slice": Mistake(_IN_F.format("x[:n].sum()"), "IndexError",
        ("Name the argument in static_argnames",),
        _IN_F.format("jax.lax.dynamic_slice_in_dim(x, 0, 2)") + "\n"
        + _IN_F.format("jnp.where(jnp.arange(x.shape[0]) < n, x, 0).sum()") + "\nassert f(x) == 2"),
    "a mask": Mistake(_IN_F.format("x[x > 0]"), "NonConcreteBooleanIndexError", ("Keep the shape",),
        _IN_F.format("jnp.where(x > 0, x, 0)") + "\n"
        + _IN_F.format("x[jnp.nonzero(x > 0, size=2, fill_value=0)]")),
    "a size of values": Mistake(_IN_F.format("jnp.unique(x)"), "ControlFlowError",
        ("how large a result is", "size="),
        _IN_F.format("jnp.unique(x, size=2), jnp.nonzero(x > 0, size=2, fill_value=0)")),
    "a format": Mistake(_IN_F.format("f'{x[0]:.2f}'"), "TypeError", ('jv.print("{}", x)',),
        _IN_F.format("jv.print('{}', x)")),
    "lax": Mistake(_IN_F.format("jax.lax.add(v, x)"), "ValueError", ("pass v.value",),
        _IN_F.format("jax.lax.add(v.value, x)")),
    "trees": Mistake(_IN_F.format("jax.tree.map(jnp.add, [v], [x])"), "ValueError",
        ("[v.value for v in",),
        "for w, new in zip([v], optax.apply_updates([w.value for w in [v]], [x])):\n"
        "    w.assign(new)\njv.optimizers.Optax(optax.adam(1e-3)).minimize(loss, model)"),
    "shapes, by variable": Mistake(_IN_F.format("jnp.dot(x[:2], v)"), "TypeError",
        ("Variables of such shapes: 'w' (3,)",)),
    "nested": Mistake(_IN_F.format("x if x[0] > 0 else -x") + "\ng = f\n" + _IN_F.format("g(x)"),
        "ControlFlowError", ("line 3, in f",)),
    "a module in jit": Mistake("jax.jit(lambda m, x: m(x))(model, 2.0)", "ForeignTransformError",
        ("Use @jv.compile instead of jax.jit", "jv.functionalize"),
        "jv.compile(lambda m, x: m(x))(model, 2.0)\npure = jv.functionalize(lambda x: model(x))\n"
        "result, state = jax.jit(pure)(jv.State.of(model), x)"),
    "gradient of a model": Mistake(
        "with jv.GradientTape() as tape:\n    y = loss()\ntape.gradient(y, model)", "TapeError",
        ("tape.gradient(loss, model.trainable_variables)",),
        "with jv.GradientTape() as tape:\n    y = loss()\n"
        "tape.gradient(y, model.trainable_variables)"),
    "a flag": Mistake("jv.Variable(1.0, False)", "TypeError",
        ("jv.Variable(value, trainable=...)",), "jv.Variable(1.0, trainable=False)"),
    "a class": Mistake("jv.compile(Model)", "CompileError", ("is a class",
        "model = jv.compile(Model(...))"), "model = jv.compile(Model())\nmodel(2.0)"),
    "an argument too few": Mistake("jv.compile(lambda a, b: a)(x)", "CompileError",
        ("(a, b): missing a required argument: 'b'",)),
    "a model for a rate": Mistake("jv.optimizers.SGD(model)", "NotATensorError",
        ("the learning rate, not Model",), "jv.optimizers.SGD(0.1).minimize(loss, model)"),
    "one pair": Mistake("jv.optimizers.SGD(0.1).apply_gradients((x, v))", "TypeError",
        ("[(gradient, variable)]",), "jv.optimizers.SGD(0.1).apply_gradients([(x, v)])"),
    "an array that is trained": Mistake("jv.optimizers.SGD(0.1).minimize(loss, [x])", "TypeError",
        ("is a jv.Variable",)),
    "fit": Mistake("model.fit(x, x)", "AttributeError", ("optimizer.minimize(loss, model)",),
        "optimizer = jv.optimizers.SGD(0.1)\n"
        "step = jv.compile(lambda: optimizer.minimize(loss, model))\nstep(), step()"),
    "parameters": Mistake("model.parameters()", "AttributeError",
        ("Use model.trainable_variables.",), "model.trainable_variables"),
    "apply": Mistake("model.apply({}, x)", "AttributeError", ("pure(jv.State.of(model), x)",),
        "pure = jv.functionalize(model); pure(jv.State.of(model), x)"),
    "step": Mistake("jv.optimizers.SGD(0.1).step()", "AttributeError",
        ("optimizer.apply_gradients(zip(",)),
    "update": Mistake("jv.metrics.Mean().update(1.0)", "AttributeError",
        ("Use metric.update_state(...)",), "jv.metrics.Mean().update_state(1.0)"),
    "save": Mistake("jv.checkpoint.save('c', model)", "AttributeError",
        ("Use jv.checkpoint.Checkpoint(model=model).save(path)",)),
    "a typo in a namespace": Mistake("jv.optimizers.adam(0.1)", "AttributeError",
        ("Did you mean 'Adam'",), "jv.optimizers.Adam(0.1)"),
    "TensorFlow's words": Mistake("jv.reduce_mean(x)", "AttributeError", ("Use jnp.mean.",)),
    "shape =": Mistake("v.shape = (1, 3)", "AttributeError", ("The shape of variable 'w'",
        "jv.Variable(jnp.res"), "jv.Variable(jnp.reshape(v, (1, 3)))"),
    "a key for a shape": Mistake("jv.random.normal(jax.random.key(0), (2,))", "ShapeError",
        ("a shape, not a key", "jv.random.normal((2, 3))"),
        "jv.random.normal((2, 3)); jax.random.normal(jax.random.key(0), (2, 3))"),
    "a state that is changed": Mistake("state = jv.State.of(v=v)\nstate['v'] = x", "TypeError",
        ("state.replace({'v': value})",),
        "state = jv.State.of(v=v)\nstate = state.replace({'v': x})\nstate.commit()"),
    "a list that is searched": Mistake("[jv.Variable(x[:2]), v].index(v)", "TypeError",
        ("whether two are one variable is",), "any(w is v for w in [jv.Variable(x[:2]), v])"),
    "a vector for a number": Mistake("float(v)", "TypeError", ("Only scalar arrays",)),
    "a model for a value": Mistake("jv.Variable(jv.initializers.HeNormal())", "TypeError",
        ("this HeNormal takes some", "jv.Variable(lambda: initializer((2, 3)))"),
        "initializer = jv.initializers.HeNormal()\njv.Variable(lambda: initializer((2, 3)))"),
    "a mesh of a number": Mistake("with jv.use_mesh(4):\n    pass", "DeviceError",
        ("4 is not a mesh", 'jv.mesh({"data": -1, "model": 2})'),
        'with jv.use_mesh({"data": -1}):\n    pass'),
    "lr": Mistake("jv.optimizers.SGD(lr=0.1)", "TypeError",
        ("SGD takes no argument 'lr'. Write learning_rate=.",),
        "jv.optimizers.SGD(learning_rate=0.1)"),
    "betas": Mistake("jv.optimizers.Adam(betas=(0.9, 0.99))", "TypeError",
        ("Adam takes no argument 'betas'. Write beta_1= and beta_2=.",),
        "jv.optimizers.Adam(beta_1=0.9, beta_2=0.99)"),
    "a typo in an option": Mistake("jv.optimizers.Adam(clip_value=1.0)", "TypeError",
        ("Did you mean 'clipvalue'",), "jv.optimizers.Adam(clipvalue=1.0)"),
    "a loss that is not returned": Mistake(
        "def f():\n    (v * v).sum()\njv.optimizers.SGD(0.1).minimize(f, [v])", "TypeError",
        ("returned None. Does it `return` it?",),
        "def f():\n    return (v * v).sum()\njv.optimizers.SGD(0.1).minimize(f, [v])"),
    "a frozen variable": Mistake("f = jv.Variable(1.0, trainable=False, name='f')\n"
        "jv.optimizers.SGD(0.1).minimize(lambda: f * f, [f])", "ValueError",
        ("Not trainable, so not watched: ['f']",),
        "f = jv.Variable(1.0)\njv.optimizers.SGD(0.1).minimize(lambda: f * f, [f])"),
    "a loss that is not made": Mistake("jv.losses.MeanSquaredError(x, x)", "ValueError",
        ("A loss is made, and then called: MeanSquaredError()(y_true, y_pred).",),
        "jv.losses.MeanSquaredError()(x, x)"),
    "a name of a namespace": Mistake("jv.Adam(0.1)", "AttributeError", ("Use jv.optimizers.Adam.",),
        "jv.optimizers.Adam(0.1)"),
    "a checkpoint of TensorFlow's name": Mistake("jv.Checkpoint(v=jv.Variable(1.0))",
        "AttributeError", ("Use jv.checkpoint.Checkpoint.",),
        "jv.checkpoint.Checkpoint(v=jv.Variable(1.0))"),
    "a name of jax.nn": Mistake("jv.relu(x)", "AttributeError", ("Use jax.nn.relu.",),
        "jax.nn.relu(x)"),
    "a loss of PyTorch": Mistake("jv.losses.CrossEntropyLoss()", "AttributeError",
        ("Use jv.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True).",),
        "labels, logits = jnp.array([0, 2]), jnp.ones((2, 3))\n"
        "jv.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)"),
    "an initializer of PyTorch": Mistake("jv.initializers.xavier_uniform", "AttributeError",
        ("Use jv.initializers.GlorotUniform.",)),
    "branches that are not a list": Mistake("jv.switch(0, lambda: x, lambda: -x)",
        "ControlFlowError", ("are one list: jv.switch(i, [lambda: x, lambda: -x])",),
        "jv.switch(0, [lambda: x, lambda: -x])"),
    "a loop of two values": Mistake(
        "jv.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, 2 * y), (0, x))",
        "ControlFlowError", ("calls <lambda> with 1 argument",
        "lambda c: (c[0] + 1, 2 * c[1]), (0, x))"),
        "jv.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, 2 * c[1]), (0, x))"),
    "a loop without its counter": Mistake("jv.fori_loop(0, 3, lambda y: 2 * y, x)",
        "ControlFlowError", ("calls <lambda> with 2 arguments",
        "jv.fori_loop(0, 9, lambda i, c: 2 * c, x)"), "jv.fori_loop(0, 9, lambda i, c: 2 * c, x)"),
    "a scan in another order": Mistake("jv.scan(0.0, lambda c, a: (c + a, c), x)",
        "ControlFlowError", ("was given float32[]", "jv.scan(lambda c, x: (c + x, c), 0.0, xs)"),
        "jv.scan(lambda c, x: (c + x, c), 0.0, x)"),
    "a condition that is not first": Mistake("jv.cond(lambda: x, x[0] > 0, lambda: -x)",
        "ControlFlowError", ("jv.cond at Cell In[1], line 1, in <module> was given",),
        "jv.cond(x[0] > 0, lambda: x, lambda: -x)"),
    "branches with arguments": Mistake(_IN_F.format("jv.cond(x[0] > 0, lambda a: a, lambda a: -a)"),
        "ControlFlowError", ("calls <lambda> with 0 arguments",),
        _IN_F.format("jv.cond(x[0] > 0, lambda a: a, lambda a: -a, x)")),
    "a class that is saved": Mistake("jv.checkpoint.Checkpoint(model=Model)", "CheckpointError",
        ("it is a class. Give what it makes, model=Model(...).",),
        "jv.checkpoint.Checkpoint(model=Model())"),
    "a call that is compiled": Mistake("jv.compile(loss())", "CompileError",
        ("jv.compile(f)(x), not jv.compile(f(x))",), "jv.compile(loss)()"),
    "a static array": Mistake("jv.compile(lambda a: a, static_argnames='a')(x)", "CompileError",
        ("Arrays are not static: leave them out.",), "jv.compile(lambda a: a)(x)"),
    "an assert": Mistake("@jv.compile\ndef f(x):\n    assert x[0] > 0\nf(x)", "ControlFlowError",
        ("or `assert` at Cell In[1], line 3",),
        "@jv.compile(autograph=True)\ndef f(x):\n    assert x[0] > 0\nf(x)"),
    "a traced index": Mistake(_IN_F.format("[1, 2, 3][n]"), "ControlFlowError", ("`items[i]`",
        "static_argnames"), "jv.compile(lambda n: [1, 2, 3][n], static_argnames='n')(2)"),
    "options of jit": Mistake("jv.compile(lambda a, n: a, static_argnums=1)", "TypeError",
        ("jv.compile takes no argument 'static_argnums'", 'Write static_argnames="n"'),
        "jv.compile(lambda a, n: a, static_argnames='n')(x, 2)"),
    "donated arguments": Mistake("@jv.compile(donate_argnums=(0,))\ndef f(x):\n    return x",
        "TypeError", ("variables are donated by themselves",),
        "@jv.compile(donate=True)\ndef f(x):\n    return x\nf(x)"),
    "options of tf.function": Mistake("jv.compile(loss, jit_compile=True)", "TypeError",
        ("all is compiled by XLA",), "jv.compile(loss)()"),
    "options that are misspelled": Mistake("jv.compile(loss, autografh=True)", "TypeError",
        ("Did you mean 'autograph'?",), "jv.compile(loss, autograph=False)()"),
    "a schedule of TensorFlow": Mistake("jv.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)",
        "AttributeError", ("jv.optimizers.SGD(optax.exponential_decay(0.1, 1000, 0.9))",),
        "jv.optimizers.SGD(optax.exponential_decay(0.1, 1000, 0.9)).minimize(loss, model)"),
    "a path that is saved": Mistake("jv.export.save('f.jaxvars', jv.compile(loss))", "SavedError",
        ("What is saved comes first, then the path: jv.export.save(fn, 'f.jaxvars')",),
        "import tempfile\nf = jv.compile(loss)\nf()\n"
        "jv.export.save(f, tempfile.mkdtemp() + '/f.jaxvars')"),
    "a layer of Keras and an input": Mistake("jv.interop.from_keras(Model(), x)", "TypeError",
        ("no example input", "layer.build(x.shape)")),
    "a layer that is not here": Mistake("jv.Dropout(0.5)", "AttributeError",
        ("Use jv.interop.from_flax or from_keras of a layer",),
        "import flax.linen as nn\njv.interop.from_flax(nn.Dropout(0.5), rngs=0)"),
    "a list of numbers": Mistake(
        "@jv.compile\ndef f(data):\n    return data * v\nf([1.0, 2.0, 3.0])", "TypeError",
        ("stays a list there", "Make an array of it: jnp.asarray(data)."),
        "@jv.compile\ndef f(data):\n    return data * v\nf(jnp.asarray([1.0, 2.0, 3.0]))"),
    "a mean of a list": Mistake(
        "@jv.compile\ndef f(data):\n    return jnp.mean(data)\nf([1.0, 2.0])", "TypeError",
        ("Make an array of it: jnp.asarray(data).",),
        "@jv.compile\ndef f(data):\n    return jnp.mean(data)\nf(jnp.asarray([1.0, 2.0]))"),
    "a column of a table": Mistake("class Table:\n    def __array__(self, *_, **__):\n"
        "        return np.ones((2, 1), np.float32)\n@jv.compile\ndef f(d):\n"
        "    return d['a'] * 2\nf(Table())", "TypeError",
        ("is one array there", "or a dict of them: dict(d)"),
        "@jv.compile\ndef f(d):\n    return d['a'] * 2\nf({'a': np.ones(2)})"),
    "a first update in a branch": Mistake("adam = jv.optimizers.Adam(0.1)\n@jv.compile\n"
        "def f(c):\n    return jv.cond(c > 0, lambda: adam.minimize(loss, [model.w]), "
        "lambda: 0.0)\nf(1.0)", "CreationError",
        ("Optimizer 'adam' keeps it for ['w'], which it updates for the first time",
        "optimizer.build(variables)"),
        "adam = jv.optimizers.Adam(0.1)\nadam.build([model.w])\n@jv.compile\n"
        "def f(c):\n    return jv.cond(c > 0, lambda: adam.minimize(loss, [model.w]), "
        "lambda: 0.0)\nf(1.0)"),
    "a gradient that is None": Mistake(
        "@jv.compile\ndef f(x):\n    with jv.GradientTape() as tape:\n        y = x * 2\n"
        "    v.assign_sub(0.1 * tape.gradient(y, v, unconnected_gradients='none'))\nf(x)",
        "TypeError", ("If it is a gradient", "says why there is none")),
    "a name that is given to the sum": Mistake(
        "@jv.compile\ndef f(x):\n    v = v + x\n    return v\nf(x)",
        "UnboundLocalError", ("make 'v' a local name of the function", "v.assign(v + 1)"),
        "@jv.compile\ndef f(x):\n    v.assign(v + x)\n    return v + 0\nassert f(x)[0] == 2"),
    "float of a loss": Mistake(_IN_F.format("float(x.sum())"), "ControlFlowError",
        ("asks for a value", "line 3", "return loss    # not: float(loss)", 'jv.print("{}", loss)'),
        _IN_F.format("x.sum()") + "\nprint(float(f(x)))"),
    "item of a loss": Mistake(_IN_F.format("x.sum().item()"), "ControlFlowError",
        ("asks for a value", "`x.item()`", "print(float(step(x)))"),
        _IN_F.format("jv.print('{}', x.sum())")),
    "a list of an array": Mistake(_IN_F.format("x.tolist()"), "ControlFlowError",
        ("asks for a value", "`x.tolist()`"), _IN_F.format("x") + ".tolist()"),
    "backward": Mistake(_IN_F.format("x.sum().backward()"), "AttributeError",
        ("tape.gradient(loss, model.trainable_variables)",
        "optimizer.minimize(loss_function, model)"),
        "with jv.GradientTape() as tape:\n    y = loss()\n"
        "tape.gradient(y, model.trainable_variables)\n"
        "jv.optimizers.SGD(0.1).minimize(loss, model)"),
    "backward in a tape": Mistake(
        "with jv.GradientTape():\n    loss().backward()", "AttributeError",
        ("with jv.GradientTape() as tape: loss = ...",)),
    "requires_grad": Mistake("for p in model.variables:\n    p.requires_grad = False",
        "AttributeError", ("Use v.trainable.",),
        "for p in model.variables:\n    p.trainable = False\nassert not model.trainable_variables"),
    "zero_grad": Mistake("jv.optimizers.SGD(0.1).zero_grad()", "AttributeError",
        ("Use a new jv.GradientTape: it starts without gradients.",)),
    "the rate of a group": Mistake("jv.optimizers.SGD(0.1).param_groups[0]['lr'] = 0.01",
        "AttributeError", ("Use optimizer.learning_rate, and .assign(0.01) of it.",),
        "optimizer = jv.optimizers.SGD(0.1)\noptimizer.learning_rate.assign(0.01)"),
    "the state of an optimizer": Mistake("jv.optimizers.SGD(0.1).state_dict()", "AttributeError",
        ("Use jv.checkpoint.Checkpoint(model=model, optimizer=optimizer).save(path).",)),
    "lr that is set": Mistake("optimizer = jv.optimizers.SGD(0.1)\noptimizer.lr = 0.01",
        "AttributeError", ("SGD.lr is set at Cell In[1], line 2", "nothing would change",
        "Set optimizer.learning_rate."),
        "optimizer = jv.optimizers.SGD(0.1)\noptimizer.learning_rate = 0.01"),
    "a typo in what is set": Mistake("optimizer = jv.optimizers.Adam(0.1)\noptimizer.beta1 = 0.5",
        "AttributeError", ("Set optimizer.beta_1.",),
        "optimizer = jv.optimizers.Adam(0.1)\noptimizer.beta_1 = 0.5"),
    "a rate of another optimizer": Mistake("optimizer = jv.optimizers.SGD(0.1)\n"
        "optimizer.weight_decays = 0.1", "AttributeError", ("Did you mean 'weight_decay'?",)),
    "a variable of the class": Mistake("class Net(jv.Module):\n    w = jv.Variable(1.0)",
        "TypeError", ("Net.w is made at Cell In[1], line 1", "would share the variables",
        "self.w = ...    # not: w = ... in the class"),
        "class Net(jv.Module):\n    def __init__(self):\n        self.w = jv.Variable(1.0)\n"
        "assert len(Net().variables) == 1"),
    "a default of a dataclass": Mistake("import dataclasses\n@dataclasses.dataclass\n"
        "class Net(jv.Module):\n    w: jv.Variable = jv.Variable(1.0)", "TypeError",
        ("dataclasses.field(default_factory=lambda: ...)",),
        "import dataclasses\n@dataclasses.dataclass(eq=False)\nclass Net(jv.Module):\n"
        "    w: jv.Variable = dataclasses.field(default_factory=lambda: jv.Variable(1.0))\n"
        "assert Net().w is not Net().w"),
    "layers of the class": Mistake("class Net(jv.Module):\n    layers = [Model(), Model()]",
        "TypeError", ("Net.layers is made at", "none would find them to"),),
    "a list that is kept twice": Mistake("class Net(jv.Module):\n    def __init__(self):\n"
        "        self.variables = [jv.Variable(1.0)]\nNet()", "AttributeError",
        ("Net.variables is set at Cell In[1], line 3", "finds its variables itself",
        "self.parts = ...    # not: self.variables = ..."),
        "class Net(jv.Module):\n    def __init__(self):\n        self.parts = [jv.Variable(1.0)]\n"
        "assert len(Net().variables) == 1"),
    "a name that is set": Mistake("model.name = 'me'", "AttributeError",
        ('super().__init__(name="me")    # not: self.name = "me"',),
        "class Net(jv.Module):\n    def __init__(self):\n        super().__init__(name='me')\n"
        "assert Net().name == 'me'"),
    "logits for probabilities": Mistake("jv.losses.sparse_categorical_crossentropy("
        "[0], [[-2.0, 3.0]])", "ValueError", ("takes probabilities, but y_pred has -2",
        "from_logits=True", "jax.nn.softmax(y_pred)"),
        "jv.losses.sparse_categorical_crossentropy([0], [[-2.0, 3.0]], from_logits=True)"),
    "logits of two classes": Mistake("jv.losses.BinaryCrossentropy()([1.0], [3.0])", "ValueError",
        ("binary_crossentropy takes probabilities, but y_pred has 3", "jax.nn.sigmoid(y_pred)"),
        "jv.losses.BinaryCrossentropy(from_logits=True)([1.0], [3.0])"),
    "one-hot labels": Mistake(
        "jv.losses.sparse_categorical_crossentropy(jnp.eye(3), jnp.ones((3, 3)),"
        " from_logits=True)", "ShapeError", ("without 'sparse' in its name",),
        "jv.losses.categorical_crossentropy(jnp.eye(3), jnp.ones((3, 3)), from_logits=True)"),
    "labels that are integers": Mistake(
        "jv.losses.categorical_crossentropy([0, 2], jnp.ones((2, 3)),"
        " from_logits=True)", "ShapeError", ("whose name begins with 'sparse'",),
        "jv.losses.sparse_categorical_crossentropy([0, 2], jnp.ones((2, 3)), from_logits=True)"),
    "a label too high": Mistake(
        "jv.losses.sparse_categorical_crossentropy([1, 3], jnp.ones((2, 3)),"
        " from_logits=True)", "IndexError", ("3 classes, 0 to 2", "has a label 3")),
    "labels that are swapped": Mistake(
        "jv.losses.sparse_categorical_crossentropy(jnp.ones((2, 3)), "
        "jnp.array([0, 2]))", "ShapeError", ("Are they swapped? y_true comes first.",)),
    "a model for a tape": Mistake("with jv.GradientTape() as tape:\n    y = loss()\n"
        "tape.gradient(y, model)", "TapeError", ("tape.gradient(loss, model.trainable_variables)",),
        "with jv.GradientTape() as tape:\n    y = loss()\n"
        "tape.gradient(y, model.trainable_variables)"),
    "a float for a target": Mistake("with jv.GradientTape() as tape:\n    y = float(loss())\n"
        "tape.gradient(y, model.w)", "TapeError", ("take the gradient of the array",),
        "with jv.GradientTape() as tape:\n    y = loss()\n"
        "print(float(y), tape.gradient(y, model.w))"),
    "a loss that is computed": Mistake(
        "jv.optimizers.SGD(0.1).minimize(loss(), model)", "TypeError",
        ("minimize takes a function that computes the loss",),
        "jv.optimizers.SGD(0.1).minimize(loss, model)"),
    "integers that are trained": Mistake("n = jv.Variable([1, 2], name='n')\n"
        "jv.optimizers.SGD(0.1).minimize(lambda: (n * 1.5).sum(), [n])", "DtypeError",
        ("Variable 'n' is int32, which cannot be trained: make it a float",),
        "n = jv.Variable([1.0, 2.0])\n"
        "jv.optimizers.SGD(0.1).minimize(lambda: (n * 1.5).sum(), [n])"),
    "half for single": Mistake("half = jv.Variable(x.astype('bfloat16'), name='half')\nhalf += x",
        "DtypeError", ("float32 to variable 'half' of dtype bfloat16",
        "jnp.asarray(value, 'bfloat16')"),
        "half = jv.Variable(x.astype('bfloat16'))\nhalf += jnp.asarray(x, 'bfloat16')"),
    "division of integers": Mistake("n = jv.Variable(4, name='n')\nn /= 2", "DtypeError",
        ("float32 to variable 'n' of dtype int32",
        "jnp.round(value)"), "n = jv.Variable(4)\nn //= 2"),
    "a model in jax.grad": Mistake("jax.grad(lambda m: m(2.0))(model)", "ForeignTransformError",
        ("A Model is passed at Cell In[1], line 1", "pure = jv.functionalize("),
        "pure = jv.functionalize(lambda x: model(x))\n"
        "result, state = jax.jit(pure)(jv.State.of(model), 2.0)"),
    "jit of a method": Mistake("class Net(Model):\n    @jax.jit\n    def step(self, x):\n"
        "        return x * self.w\nNet().step(2.0)", "ForeignTransformError",
        ("Use @jv.compile instead of jax.jit",),
        "class Net(Model):\n    @jv.compile\n    def step(self, x):\n        return x * self.w\n"
        "Net().step(2.0)"),
    "vmap of an assign": Mistake("jax.vmap(lambda a: v.assign_add(a))(jnp.ones((2, 3)))",
        "ForeignTransformError", ("Variable 'w' is written at", "jv.functionalize(f)"),
        "pure = jv.functionalize(lambda a: v.assign_add(a))\n"
        "result, state = jax.vmap(pure, in_axes=(None, 0))(jv.State.of(v), jnp.ones((2, 3)))"),
    "a generator": Mistake("@jv.compile\ndef f(x):\n    yield x\nf(x)", "CompileError",
        ("f is a generator or coroutine function", "yield or await around it"),
        "f = jv.compile(lambda x: x + 1)\n"
        "def steps(x):\n    while True:\n        yield f(x)\nnext(steps(x))"),
    "recursion": Mistake("@jv.compile\ndef f(x):\n    return f(x) + 1\nf(x)", "CompileError",
        ("f calls itself with arguments of the same types", "or use a loop")),
    "a property that makes variables": Mistake(
        "class Net(jv.Module):\n    @property\n    def w(self):\n"
        "        return jv.Variable(1.0)\nnet = Net()\njv.compile(lambda: net.w + 0)()",
        "CreationError", ("nothing keeps it", "keep it, for example as self.w"),
        "class Net(jv.Module):\n    def __init__(self):\n        self.w = jv.Variable(1.0)\n"
        "net = Net()\njv.compile(lambda: net.w + 0)()"),
    "another architecture": Mistake("import tempfile\npath = jv.checkpoint.Checkpoint(model=model)"
        ".save(tempfile.mkdtemp() + '/c')\nmodel.w = jv.Variable(x)\n"
        "jv.checkpoint.Checkpoint(model=model).restore(path)", "CheckpointError",
        ("was not restored, and changed nothing", "model/w: shape () in the checkpoint, (3,) in")),
    "a seed": Mistake("jv.random.manual_seed(0)", "AttributeError", ("Use jv.random.set_seed(0).",),
        "jv.random.set_seed(0)"),
    "metrics of Keras 2": Mistake("jv.metrics.Mean().reset_states()", "AttributeError",
        ("Use metric.reset_state().",), "jv.metrics.Mean().reset_state()"),
    "a donated value": Mistake("jax.jit(lambda a: a + 1, donate_argnums=0)(v)\nv + 1",
        "UninitializedError", ("Variable 'w' is used at Cell In[1], line 2", "jnp.copy(v.value)"),
        "jax.jit(lambda a: a + 1, donate_argnums=0)(jnp.copy(v.value))\nv + 1"),
    "a layer of flax as it is": Mistake("import flax.linen as nn\nclass Net(jv.Module):\n"
        "    def __init__(self):\n        self.d = nn.Dense(3)\nNet()", "InteropError",
        ("keeps its state outside of Variables", "jv.interop.from_flax(d, example_input)"),
        "import flax.linen as nn\nclass Net(jv.Module):\n    def __init__(self):\n"
        "        self.d = jv.interop.from_flax(nn.Dense(3), x)\nassert len(Net().variables) == 2"),
}  # fmt: skip
