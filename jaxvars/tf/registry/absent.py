"""What TensorFlow has and this package has not: the reason, and what to write instead."""

from __future__ import annotations

from fnmatch import fnmatchcase

_GRAPHS = "TensorFlow's graphs and sessions are not here. Write it with tf.function."
_STARTED = "variables have their values from the start: leave it out."
_NAMED = "make a tf.Variable(value, name=...) once, and keep it on a tf.Module."
_FIT = "use tf.keras.Model with fit, evaluate and predict, or a loop around a @tf.function."
_FLAGS = "use Python's argparse, or absl.flags and absl.app.run of the package absl-py."
_OPTIONS = "use tf.config.set_visible_devices, tf.config.threading and the like."

WHY = {
    **dict.fromkeys(
        ["Session", "InteractiveSession"],
        "operations run at once. Call a @tf.function where TensorFlow 1 has session.run.",
    ),
    **dict.fromkeys(
        ["placeholder", "sparse_placeholder"],
        "write a @tf.function, and give it the tensor as an argument; its input_signature takes "
        "tf.TensorSpec(shape, dtype).",
    ),
    **dict.fromkeys(["get_variable", "variable_scope", "get_local_variable"], _NAMED),
    **dict.fromkeys(
        ["global_variables_initializer", "local_variables_initializer",
         "initialize_all_variables", "tables_initializer"], _STARTED,
    ),
    **dict.fromkeys(
        ["global_variables", "trainable_variables"],
        "a tf.Module knows its own: module.variables, module.trainable_variables.",
    ),
    "layers": "use tf.keras.layers, with the package keras, or write each layer as a tf.Module.",
    "estimator": _FIT,
    "contrib": "its parts that stayed are in tf itself, in tf.keras, or packages of their own.",
    **dict.fromkeys(["app", "flags"], _FLAGS),
    "logging": "use tf.get_logger(), or Python's logging.",
    "gfile": "use tf.io.gfile.",
    **dict.fromkeys(["ConfigProto", "GPUOptions"], _OPTIONS),
    **dict.fromkeys(
        ["get_default_graph", "reset_default_graph"],
        "operations run at once, and each tf.function has a graph: "
        "f.get_concrete_function(...).graph.",
    ),
    "enable_eager_execution": "operations run at once: leave it out.",
    "set_random_seed": "use tf.random.set_seed.",
    "assign": "use v.assign(value).",
    "log": "use tf.math.log.",
    **dict.fromkeys(
        ["ragged_fill_empty_rows", "ragged_fill_empty_rows_grad"],
        "they are kernels of tf.ragged, which is here.",
    ),
    **dict.fromkeys(["Graph", "Operation", "import_graph_def"], _GRAPHS),
    "graph_util": "there are no GraphDefs to look at. f.get_concrete_function(...).graph and "
    "f.experimental_get_compiler_ir(...)() show a function's program.",
    "feature_column": "it is deprecated. Write the columns as functions: tf.one_hot, "
    "tf.nn.embedding_lookup, tf.searchsorted for buckets, tf.concat.",
    "lite": "it makes files for TensorFlow Lite. tf.saved_model.save writes a program that "
    "jaxvars loads anywhere; jax.export writes StableHLO, from which other tools convert.",
    "tpu": "TPUs are devices of JAX, and need no initialization: "
    "tf.config.list_physical_devices('TPU') lists them, tf.distribute.MirroredStrategy() uses all.",
    "xla": "everything is compiled by XLA: @tf.function is enough.",
    "mlir": "f.experimental_get_compiler_ir(...)('hlo') returns a function's StableHLO, as MLIR.",
    "dtensor": "tensors on meshes are those of JAX: jax.make_mesh and jax.sharding, or "
    "tf.distribute.MirroredStrategy.",
    "queue": "queues belong to TensorFlow 1. Use tf.data.Dataset, or Python's queue.Queue.",
    **dict.fromkeys(
        ["load_library", "load_op_library"],
        "operations written in C++ are JAX's: see jax.ffi. Python on the host: "
        "tf.numpy_function.",
    ),
    "RegisterGradient": "gradients belong to functions: use tf.custom_gradient.",
    **dict.fromkeys(
        ["no_gradient", "NoGradient"], "use tf.stop_gradient on the result."
    ),
    **dict.fromkeys(["resource", "variant"], "no tensor has this type."),
    "CriticalSection": "a tf.function that assigns is all-or-nothing: calls take turns.",
    **{
        f"{space}{name}nd": f"use tf.signal.{name}3d, or jnp.fft.{name}n(x, axes=...)."
        for name in ("fft", "ifft", "rfft", "irfft")
        for space in ("", "signal.")
    },
    "linalg.LinearOperator*": "use the dense matrix, with tf.linalg.matmul, tf.linalg.solve, "
    "tf.linalg.slogdet. TensorFlow Probability has such operators for JAX, in "
    "tensorflow_probability.substrates.jax.tf2jax.linalg.",
    "linalg.experimental": "use tf.linalg.solve, or jax.scipy.sparse.linalg.cg, of "
    "jnp.asarray(a) and (b), for conjugate "
    "gradients.",
    "linalg.tridiagonal_solve": "use tf.linalg.solve with the dense matrix, or "
    "jax.lax.linalg.tridiagonal_solve with jnp.asarray(...) of each tensor.",
    "linalg.tridiagonal_matmul": "use tf.matmul with the dense matrix: tf.linalg.diag makes it.",
    "linalg.banded_triangular_solve": "use tf.linalg.triangular_solve with the dense matrix.",
    "linalg.eigh_tridiagonal": "use tf.linalg.eigh with the dense matrix, or "
    "jax.scipy.linalg.eigh_tridiagonal.",
    "raw_ops": "call each operation by its own name: tf.math.add for AddV2, tf.matmul for "
    "BatchMatMulV2. Arguments may have other names.",
    "quantization": "XLA has no tensors of quantized types. A Keras model has model.quantize "
    "for its layers. To round numbers to steps, and let gradients through: "
    "x + tf.stop_gradient(tf.round(x / step) * step - x).",
    "test.compute_gradient": "use jaxvars.debugging.verify(f, *x), which compares gradients with "
    "finite differences.",
    "test.disable_with_predicate": "use unittest.skipIf.",
    "test.is_cpu_target_available": "programs are compiled for this machine: see Python's "
    "platform.machine().",
    "test.with_eager_op_as_function": "operations run as programs already: leave it out.",
    "conv": "use tf.nn.convolution, which has the same for any number of dimensions.",
    "hessians": "differentiate twice: outer.jacobian(inner.gradient(y, x), x), with inner in "
    "outer.",
    "edit_distance": "compute it on the host, by a package such as rapidfuzz or jiwer.",
    "fingerprint": "use tf.strings.to_hash_bucket_fast, or hashlib on x.numpy().tobytes().",
    "extract_volume_patches": "use jax.lax.conv_general_dilated_patches(jnp.asarray(x), ...); "
    "for images "
    "tf.image.extract_patches.",
    "random_index_shuffle": "use tf.random.experimental.stateless_shuffle(tf.range(n), seed).",
    "sysconfig": "nothing is compiled against this package. tf.config.list_physical_devices() and "
    "jax.print_environment_info() say what there is.",
    "nondifferentiable_batch_function": "there is no server that batches calls here.",
    "security": "there is nothing in it for programs.",
    "tools": "there is nothing in it for programs.",
    "nn.dilation2d": "use tf.nn.max_pool2d(x, ...), for a flat filter.",
    "nn.erosion2d": "use -tf.nn.max_pool2d(-x, ...), for a flat filter.",
    **dict.fromkeys(
        ["nn.fractional_avg_pool", "nn.fractional_max_pool"],
        "use tf.nn.avg_pool2d or tf.nn.max_pool2d, or tf.image.resize for another size.",
    ),
    **dict.fromkeys(
        ["nn.with_space_to_batch", "required_space_to_batch_paddings"],
        "convolutions and tf.nn.pool take dilations=; tf.space_to_batch takes paddings.",
    ),
    "nn.depthwise_conv2d_backprop_*": "take the gradient of tf.nn.depthwise_conv2d with a "
    "tf.GradientTape.",
    "nn.ctc_unique_labels": "tf.nn.ctc_loss needs no unique=: leave it out.",
    "nn.collapse_repeated": "tf.nn.ctc_greedy_decoder does it for logits; itertools.groupby for "
    "one row of labels.",
    **dict.fromkeys(
        ["math.approx_max_k", "math.approx_min_k", "nn.approx_max_k", "nn.approx_min_k",
         "approx_top_k"],
        "use tf.math.top_k, of -x for the smallest; on a TPU "
        "jax.lax.approx_max_k(jnp.asarray(x), k).",
    ),
    "nn.isotonic_regression": "use sklearn.isotonic.isotonic_regression, on NumPy arrays.",
    **dict.fromkeys(
        ["signal.mdct", "signal.inverse_mdct"],
        "use tf.signal.stft and tf.signal.inverse_stft; tf.signal.dct has the types 1 to 4.",
    ),
    "signal.kaiser_bessel_derived_window": "use tf.signal.kaiser_window.",
    "signal.vorbis_window": "compute it: sin(pi / 2 * sin(pi * (i + 0.5) / n) ** 2).",
    **{
        f"{space}.{name}_candidate_sampler": "use tf.random.log_uniform_candidate_sampler. A loss "
        "takes other draws, too: sampled_values=(classes, true_expected_count, expected_count)."
        for space, name in (
            ("random", "all"), ("random", "fixed_unigram"), ("random", "learned_unigram"),
            ("nn", "all"), ("nn", "fixed_unigram"), ("nn", "learned_unigram"),
        )
    },
    "nn.compute_accidental_hits": "give tf.nn.sampled_softmax_loss or tf.nn.nce_loss "
    "remove_accidental_hits=True.",
    **dict.fromkeys(
        ["data.experimental.Reducer", "data.experimental.group_by_reducer"],
        "use tf.data.Dataset.group_by_window, with group.reduce in its reduce_func.",
    ),
    "data.experimental.TFRecordWriter": "use tf.io.TFRecordWriter, in a loop over the dataset.",
    "train.experimental": "a checkpoint is one file, which is not split, and keeps the state of "
    "Python objects as strings: tf.Variable(json.dumps(state)).",
    "lookup.experimental.DenseHashTable": "use tf.lookup.experimental.MutableHashTable, for all "
    "keys.",
    **dict.fromkeys(
        ["nn.embedding_lookup_sparse", "nn.safe_embedding_lookup_sparse"],
        "tf.nn.embedding_lookup takes ragged ids: tf.reduce_mean(..., axis=1) combines each row's.",
    ),
}  # fmt: skip


def reason(name: str) -> str:
    """Return why a name of TensorFlow's is not there; nothing if it is not known.

    >>> reason("xla")
    'everything is compiled by XLA: @tf.function is enough.'
    >>> reason("linalg.LinearOperatorDiag") == WHY["linalg.LinearOperator*"]
    True
    """
    return next((why for known, why in WHY.items() if fnmatchcase(name, known)), "")
