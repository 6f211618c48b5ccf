"""`tf.saved_model`: objects and functions, saved and loaded."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxvars.tf as tf
from jaxvars.errors import SavedError
from jaxvars.tf.functions import arguments as _arguments


class Scale(tf.Module):
    """A module with functions of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.v = tf.Variable(2.0, name="v")
        self.listed = [tf.Variable([1.0, 1.0], trainable=False)]
        self.mapped = {"k": self.v}
        self.n = 3

    @tf.function
    def __call__(self, x: Any) -> Any:
        return x * self.v

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def mutate(self, a: Any) -> None:
        self.v.assign(a)

    @tf.function
    def two(self, x: Any, y: float = 2.0, flag: bool = True) -> Any:
        return {"a": x + y if flag else x, "b": (x, x * 2)}

    @tf.function
    def never(self, x: Any) -> Any:
        return x


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    import jax

    with jax.enable_x64(True):
        path = str(tmp_path_factory.mktemp("saved"))
        model = Scale()
        model(tf.constant(1.0))
        model(tf.constant([1.0, 2.0, 3.0]))
        model.two(tf.constant(1.0))
        served = model.__call__.get_concrete_function(tf.TensorSpec([None], tf.float32))
        tf.saved_model.save(model, path, signatures=served)
    return path


def test_what_was_traced_can_be_called(folder: str) -> None:
    loaded = tf.saved_model.load(folder)
    assert loaded(tf.constant(3.0)).numpy() == 6.0
    assert loaded(3).numpy() == 6.0
    np.testing.assert_array_equal(loaded([1.0, 2.0, 4.0]).numpy(), [2, 4, 8])
    result = loaded.two(tf.constant(1.0))
    assert result["a"].numpy() == 3.0
    assert [x.numpy() for x in result["b"]] == [1, 2]
    with pytest.raises(ValueError, match="Could not find matching concrete function") as error:
        loaded.two(tf.constant(1.0), 3.0)
    assert "two(x: float32[]" in str(error.value)
    with pytest.raises(ValueError, match="Found zero restored functions"):
        loaded.never(tf.constant(1.0))


def test_the_variables_are_in_their_places(folder: str) -> None:
    loaded = tf.saved_model.load(folder)
    assert loaded.v.name == "v:0"
    assert loaded.mapped["k"] is loaded.v
    assert not loaded.listed[0].trainable
    assert not hasattr(loaded, "n")
    loaded.mutate(5.0)
    assert loaded.v.numpy() == 5.0
    assert loaded(tf.constant(3.0)).numpy() == 15.0
    assert tf.saved_model.load(folder).v.numpy() == 2.0


def test_signatures(folder: str) -> None:
    loaded = tf.saved_model.load(folder)
    assert list(loaded.signatures) == ["serving_default"]
    serve = loaded.signatures["serving_default"]
    for given in ({"x": tf.constant([1.0, 5.0])}, {"x": [1.0, 5.0]}):
        np.testing.assert_array_equal(serve(**given)["output_0"].numpy(), [2, 10])
    assert serve.structured_input_signature == ((), {"x": tf.TensorSpec([None], name="x")})
    assert serve.structured_outputs == {"output_0": tf.TensorSpec([None], name="output_0")}
    assert serve.variables == (loaded.v,)
    with pytest.raises(TypeError, match=r"signature_wrapper\(x\)"):
        serve(y=tf.constant([1.0]))


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    model = Scale()
    with pytest.raises(ValueError, match=r"Only `tf.functions` with an input signature"):
        tf.saved_model.save(model, tmp_path, signatures=model.two)
    spec = tf.TensorSpec([None])
    with pytest.raises(ValueError, match=r"Got a non-Tensor value .* for key 'b'"):
        tf.saved_model.save(model, tmp_path, signatures=model.two.get_concrete_function(spec))
    with pytest.raises(ValueError, match=r"None.* for key 'output_0'"):
        tf.saved_model.save(model, tmp_path, signatures={"m": model.mutate})
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, tmp_path)
    assert not tf.saved_model.contains_saved_model(tmp_path)
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        tf.saved_model.load(tmp_path)
    theirs = Path(__file__).resolve().parents[1] / "goldens" / "tf_checkpoints" / "saved"
    with pytest.raises(OSError, match=r"but for its values: .*restore\('.*variables'\)"):
        tf.saved_model.load(theirs)
    w = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(w=w).restore(str(theirs / "variables" / "variables")).expect_partial()
    assert w.numpy().tolist() == [4.0, 5.0]


class Dense(tf.Module):
    """One layer."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.w = tf.Variable(tf.fill([n_in, n_out], 0.1), name="w")

    def __call__(self, x: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, self.w))


class Net(tf.Module):
    """Two layers, and a step of training."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [Dense(3, 4), Dense(4, 2)]

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 2])])
    def train(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        weights = self.trainable_variables
        for v, g in zip(weights, tape.gradient(loss, weights), strict=True):
            v.assign_sub(0.1 * g)
        return loss


def test_a_saved_step_trains_and_is_part_of_another_model(tmp_path: Path) -> None:
    tf.saved_model.save(Net(), tmp_path / "net")
    loaded = tf.saved_model.load(tmp_path / "net")
    x, y = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), tf.ones([2, 2])
    losses = [loaded.train(x, y).numpy() for _ in range(3)]  # TensorFlow's
    np.testing.assert_allclose(losses, [0.36879998, 0.15223737, 0.15018146], rtol=1e-5)

    class Bigger(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.scale = loaded, tf.Variable(2.0)

        @tf.function
        def __call__(self, x: Any) -> Any:
            return self.inner(x) * self.scale

    bigger = Bigger()
    result = bigger(x)
    assert bigger.variables == (bigger.scale,)  # what was loaded is not a tf.Module
    tf.saved_model.save(bigger, tmp_path / "bigger")
    again = tf.saved_model.load(tmp_path / "bigger")
    np.testing.assert_allclose(again(x).numpy(), result.numpy())
    np.testing.assert_allclose(again.inner(x[:1]).numpy() * 2, result.numpy()[:1], rtol=1e-6)


def test_open_sizes_that_cannot_be_open(tmp_path: Path) -> None:
    class Shift(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = tf.Variable([1.0, 2.0])

        @tf.function(input_signature=[tf.TensorSpec([None, None])])
        def __call__(self, x: Any) -> Any:
            return tf.reshape(x, [-1, 2]) - self.mean  # not for the size 1

    model = Shift()
    tf.saved_model.save(model, tmp_path / "default")
    tf.saved_model.save(model, tmp_path, signatures=model.__call__)
    for rows, path in ((1, tmp_path), (3, tmp_path / "default")):
        loaded = tf.saved_model.load(path)
        x = tf.zeros([rows, 2])
        np.testing.assert_array_equal(loaded(x).numpy(), [[-1, -2]] * rows)
        serve = loaded.signatures["serving_default"]
        np.testing.assert_array_equal(serve(x=x)["output_0"], [[-1, -2]] * rows)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a multiple of 2"):
        loaded(tf.zeros([1, 3]))
    add = tf.function(lambda x: x + tf.ones([2]), input_signature=[tf.TensorSpec([None])])
    cube = tf.TensorSpec([None, None, None])
    sums = tf.function(lambda x: x + tf.ones([2, 2]), input_signature=[cube])
    other = tf.train.Checkpoint(mean=model.mean)
    for function in (add, sums):
        vars(other)["f"] = function
        with pytest.raises(SavedError, match=r"Give those that must be certain ones"):
            tf.saved_model.save(other, tmp_path)


def test_that_a_shape_fits_is_checked_when_it_is_known(tmp_path: Path) -> None:
    module: Any = tf.Module()
    module.w = tf.Variable([[1.0], [2.0], [3.0]])

    def predict(x: Any) -> Any:
        return tf.reshape(x, [-1, 3]) @ module.w

    module.f = tf.function(predict, input_signature=[tf.TensorSpec([None, None, None])])
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    x = tf.reshape(tf.range(12.0), [2, 3, 2])
    for f in (loaded.f, tf.function(loaded.f), lambda x: loaded.signatures["serving_default"](x)):
        result = f(x)
        result = result["output_0"] if isinstance(result, dict) else result
        assert result.numpy().tolist() == predict(x).numpy().tolist()
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"multiple of 3: .* values = 8"):
            f(tf.ones([2, 2, 2]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    assert tape.gradient(y, x).numpy().ravel().tolist() == [1, 2, 3] * 4


def test_examples_have_other_sizes_before_they_are_prepared(tmp_path: Path) -> None:
    module: Any = tf.Module()
    module.w, mean = tf.Variable(tf.ones([5, 1])), tf.constant([1.0, 0.0, 0.0, 0.0, 0.0])

    def predict(x: Any) -> Any:
        kinds = tf.one_hot(tf.cast(x[:, -1], tf.int32), 3)
        return (tf.concat([x[:, :-1], kinds], 1) - mean) @ module.w

    module.f = tf.function(predict, input_signature=[tf.TensorSpec([None, None])])
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    x = tf.constant([[3.0, 4.0, 1.0], [5.0, 6.0, 7.0]])
    for served in (loaded.f(x), loaded.signatures["serving_default"](x)["output_0"]):
        assert served.numpy().tolist() == [[7], [10]]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(x[:, :2])


def test_a_method_of_an_object_that_is_gone_is_not_saved(tmp_path: Path) -> None:
    class Halved(tf.Module):
        @tf.function
        def __call__(self, x: Any) -> Any:
            return x / 2

    gone = Halved()
    concrete = gone.__call__.get_concrete_function(tf.TensorSpec([None], tf.float32))
    del gone
    gc.collect()
    assert not concrete.is_alive
    for _ in range(50):  # one of them has the number that the first had
        model = Halved()
        model.__call__.get_concrete_function(tf.TensorSpec([2], tf.float32))
        assert len(Halved.__call__._list_requested()) == 1
        assert Halved.__call__._list_requested((model,))[0].belongs_to((model,))
    holder = tf.Module()
    holder.f = Halved.__call__  # the function itself, which any object may be given to
    del model
    gc.collect()
    tf.saved_model.save(holder, tmp_path)
    with pytest.raises(ReferenceError, match="is a method of is gone"):
        concrete(tf.constant([1.0]))


def test_numbers_are_known_to_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x, y=2.5, z=1j, s="literal int 4": (x * y + len(s), z))
    module.f(tf.constant(1.0))
    module.f(tf.constant(1.0), -0.0)
    tf.saved_model.save(module, tmp_path)
    monkeypatch.setattr(_arguments, "_LITERALS", {})  # as it is there
    loaded = tf.saved_model.load(tmp_path)
    assert [x.numpy() for x in loaded.f(tf.constant(1.0))] == [15.5, 1j]
    assert loaded.f(tf.constant(1.0), -0.0, z=1j)[0].numpy() == 13.0
    with pytest.raises(ValueError, match="Could not find matching"):
        loaded.f(tf.constant(1.0), 0.0)


def test_damage_is_found(tmp_path: Path) -> None:
    model = Scale()
    tf.saved_model.save(model, tmp_path)
    file = tmp_path / "saved_model.jaxvars"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(tf.errors.DataLossError, match=r"saved_model\.jaxvars"):
        tf.saved_model.load(tmp_path)


# ---------------------------------------------------------------- files, what is served, ranks
def test_files_are_saved_with_it(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.txt").write_text(folder)
    module = tf.Module()
    module.files = [tf.saved_model.Asset(tmp_path / part / "words.txt") for part in ("one", "two")]
    module.same = tf.saved_model.Asset(str(tmp_path / "one" / "words.txt"))
    tf.saved_model.save(module, tmp_path / "saved")
    (tmp_path / "one" / "words.txt").unlink()
    (tmp_path / "saved").rename(tmp_path / "moved")
    loaded = tf.saved_model.load(tmp_path / "moved")
    paths = [asset.asset_path.numpy().decode() for asset in (*loaded.files, loaded.same)]
    assert paths[0] == paths[2] == f"{tmp_path}/moved/assets/words.txt"
    assert [Path(path).read_text() for path in paths] == ["one", "two", "one"]
    module.gone = tf.saved_model.Asset(tmp_path / "one" / "words.txt")
    with pytest.raises(FileNotFoundError, match="to be saved as an asset"):
        tf.saved_model.save(module, tmp_path / "saved")


def test_the_one_function_with_a_signature_is_served(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec(None, tf.float32)])
    module.g = tf.function(lambda x: 3 * x)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    served = loaded.signatures["serving_default"]
    for x in (3.0, [[1.0, 2.0]]):  # of any rank
        np.testing.assert_array_equal(loaded.f(tf.constant(x)), 2 * np.array(x))
        np.testing.assert_array_equal(served(x=tf.constant(x))["output_0"], 2 * np.array(x))
    any_rank = {name: tf.TensorSpec(None, name=name) for name in ("x", "output_0")}
    assert served.structured_input_signature == ((), {"x": any_rank["x"]})
    assert served.structured_outputs == {"output_0": any_rank["output_0"]}
    module.h = tf.function(lambda x: 4 * x, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, tmp_path)
    assert list(tf.saved_model.load(tmp_path).signatures) == []
    with pytest.raises(AssertionError, match=r"inside a traced @tf\.function"):
        tf.function(lambda: tf.saved_model.save(module, tmp_path))()


def test_parts_that_lead_back_to_the_whole(tmp_path: Path) -> None:
    whole: Any = tf.Module()
    part: Any = tf.Module()
    part.v, part.whole, whole.parts = tf.Variable(1.0), whole, (part, part)
    part.siblings = whole.parts
    tf.saved_model.save(whole, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert [one.v.numpy() for one in loaded.parts] == [1, 1]
    assert loaded.parts[0].whole is loaded
    assert loaded.parts[0].siblings is loaded.parts


def test_names_of_the_format() -> None:
    assert tf.saved_model.PREDICT_METHOD_NAME == "tensorflow/serving/predict"
    with pytest.raises(AttributeError, match=r"is called tf\.saved_model\.FILE"):
        tf.saved_model.SAVED_MODEL_FILENAME_PB  # noqa: B018 - it raises


class Named(tf.Module):
    """Gives scores with the names of what they are for."""

    def __init__(self) -> None:
        self.factor = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def score(self, x: Any) -> Any:
        return {"scores": x * self.factor, "labels": tf.constant([b"cat", b"\xff"]), "of": "word"}


def test_strings_that_are_known_are_returned(tmp_path: Path) -> None:
    model = Named()
    tf.saved_model.save(model, tmp_path / "m", signatures=model.score)
    loaded = tf.saved_model.load(tmp_path / "m")
    served = loaded.signatures["serving_default"]
    for found in (loaded.score(tf.constant([1.0, 2.0])), served(tf.constant([1.0, 2.0]))):
        assert found["scores"].numpy().tolist() == [2.0, 4.0]
        assert found["labels"].numpy().tolist() == [b"cat", b"\xff"]
        assert (found["of"].numpy(), found["of"].dtype) == (b"word", tf.string)
    labels = served.structured_outputs["labels"]
    assert labels == tf.TensorSpec([2], tf.string, name="labels")
    tf.saved_model.save(loaded, tmp_path / "again")
    again = tf.saved_model.load(tmp_path / "again")
    assert again.score(tf.constant([1.0]))["labels"].numpy().tolist() == [b"cat", b"\xff"]


def test_variables_of_strings_are_saved_and_functions_that_read_them_are_refused(
    tmp_path: Path,
) -> None:
    model = tf.Module()
    model.words = tf.Variable([b"\xff", b"a"])
    tf.saved_model.save(model, tmp_path / "m")
    assert tf.saved_model.load(tmp_path / "m").words.numpy().tolist() == [b"\xff", b"a"]
    model.read = tf.function(lambda: model.words[0], input_signature=[])
    with pytest.raises(
        SavedError, match=r"works on strings, .* without @tf\.function is left out: make"
    ):
        tf.saved_model.save(model, tmp_path / "n")


def test_what_has_only_an_effect_is_left_out_with_one_warning(tmp_path: Path, capfd: Any) -> None:
    model = tf.Module()
    model.v = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def shows(x: Any) -> Any:
        tf.print("x is", x, model.v)
        tf.debugging.assert_positive(x, message="must be positive")
        for i in tf.range(3):
            tf.print(i)
            tf.py_function(lambda y: print("called", y), [x], [])
            x += 1.0
        tf.numpy_function(lambda y: print("called", y), [x], [])
        tf.numpy_function(lambda y: y, [x[0]], tf.float32)  # not used
        return x * model.v * tf.gather([1.0, 1.0], tf.cast(x[0] > 0.0, tf.int32))

    @tf.function(input_signature=[tf.TensorSpec([])])
    def computes(x: Any) -> Any:
        tf.print(x)
        return tf.py_function(lambda y: y.numpy() + 1.0, [x], tf.float32)

    model.shows = shows
    with pytest.warns(UserWarning, match="no file holds Python") as told:
        tf.saved_model.save(model, str(tmp_path))
    assert [str(one.message).split(":")[0] for one in told] == [
        "shows is saved without tf.numpy_function, tf.print, tf.py_function"
    ]
    loaded = tf.saved_model.load(str(tmp_path))
    capfd.readouterr()
    assert loaded.shows(tf.constant([1.0, 3.0])).numpy().tolist() == [8.0, 12.0]
    assert capfd.readouterr() == ("", "")
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        loaded.shows(tf.constant([-1.0]))
    model.shows = computes
    with pytest.raises(SavedError, match="computes computes with what it calls back into Python"):
        tf.saved_model.save(model, str(tmp_path))


def test_a_method_of_another_object_is_saved(tmp_path: Path) -> None:
    class Doubles(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def double(self, x: Any) -> Any:
            return x * 2.0

    model = tf.Module()
    model.f = Doubles().double  # a TypeError: its argument was missing
    tf.saved_model.save(model, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.f(tf.constant([1.0, 3.0])).numpy().tolist() == [2.0, 6.0]
