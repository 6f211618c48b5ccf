"""What TensorFlow has and this package has not: the reason, and what to write instead."""

from __future__ import annotations

from fnmatch import fnmatchcase

_ROWS = """
Session InteractiveSession: operations run at once. Call a @tf.function where TensorFlow 1 has
    session.run.
placeholder sparse_placeholder: write a @tf.function, and give it the tensor as an argument; its
    input_signature takes tf.TensorSpec(shape, dtype).
get_variable variable_scope get_local_variable: make a tf.Variable(value, name=...) once, and keep
    it on a tf.Module.
global_variables_initializer local_variables_initializer initialize_all_variables
    tables_initializer: variables have their values from the start: leave it out.
global_variables trainable_variables: a tf.Module knows its own: module.variables,
    module.trainable_variables.
layers: use tf.keras.layers, with the package keras, or write each layer as a tf.Module.
estimator: use tf.keras.Model with fit, evaluate and predict, or a loop around a @tf.function.
contrib: its parts that stayed are in tf itself, in tf.keras, or packages of their own.
app flags: use Python's argparse, or absl.flags and absl.app.run of the package absl-py.
logging: use tf.get_logger(), or Python's logging.
ConfigProto GPUOptions: use tf.config.set_visible_devices, tf.config.threading and the like.
get_default_graph reset_default_graph: operations run at once, and each tf.function has a graph:
    f.get_concrete_function(...).graph.
enable_eager_execution: operations run at once: leave it out.
set_random_seed: use tf.random.set_seed.
assign: use v.assign(value).
log: use tf.math.log.
to_float to_double to_int32 to_int64 to_bfloat16: use tf.cast(x, tf.float32) and the like.
keras.preprocessing.image.ImageDataGenerator: use tf.keras.utils.image_dataset_from_directory, or
    tf.data.Dataset.from_tensor_slices; and layers that change images: tf.keras.layers.Rescaling,
    RandomFlip, RandomRotation.
ragged_fill_empty_rows ragged_fill_empty_rows_grad: they are kernels of tf.ragged, which is here.
Graph Operation import_graph_def: TensorFlow's graphs and sessions are not here. Write it with
    tf.function.
graph_util: there are no GraphDefs to look at. f.get_concrete_function(...).graph and
    f.experimental_get_compiler_ir(...)() show a function's program.
feature_column: it is deprecated. Write the columns as functions: tf.one_hot,
    tf.nn.embedding_lookup, tf.searchsorted for buckets, tf.concat.
lite: it makes files for TensorFlow Lite. tf.saved_model.save writes a program that jaxvars loads
    anywhere; jax.export writes StableHLO, from which other tools convert.
tpu: TPUs are devices of JAX, and need no initialization: tf.config.list_physical_devices('TPU')
    lists them, tf.distribute.MirroredStrategy() uses all.
xla: everything is compiled by XLA: @tf.function is enough.
mlir: f.experimental_get_compiler_ir(...)('hlo') returns a function's StableHLO, as MLIR.
dtensor: tensors on meshes are those of JAX: jax.make_mesh and jax.sharding, or
    tf.distribute.MirroredStrategy.
queue: queues belong to TensorFlow 1. Use tf.data.Dataset, or Python's queue.Queue.
load_library load_op_library: operations written in C++ are JAX's: see jax.ffi. Python on the host:
    tf.numpy_function.
RegisterGradient: gradients belong to functions: use tf.custom_gradient.
no_gradient NoGradient: use tf.stop_gradient on the result.
resource variant: no tensor has this type.
CriticalSection: a tf.function that assigns is all-or-nothing: calls take turns.
fftnd signal.fftnd: use tf.signal.fft3d, or jnp.fft.fftn(x, axes=...).
ifftnd signal.ifftnd: use tf.signal.ifft3d, or jnp.fft.ifftn(x, axes=...).
rfftnd signal.rfftnd: use tf.signal.rfft3d, or jnp.fft.rfftn(x, axes=...).
irfftnd signal.irfftnd: use tf.signal.irfft3d, or jnp.fft.irfftn(x, axes=...).
linalg.LinearOperator*: use the dense matrix, with tf.linalg.matmul, tf.linalg.solve,
    tf.linalg.slogdet. TensorFlow Probability has such operators for JAX, in
    tensorflow_probability.substrates.jax.tf2jax.linalg.
linalg.experimental: use tf.linalg.solve, or jax.scipy.sparse.linalg.cg, of jnp.asarray(a) and (b),
    for conjugate gradients.
linalg.tridiagonal_solve: use tf.linalg.solve with the dense matrix, or
    jax.lax.linalg.tridiagonal_solve with jnp.asarray(...) of each tensor.
linalg.tridiagonal_matmul: use tf.matmul with the dense matrix, the sum of tf.linalg.diag(..., k=1),
    that of k=0 and that of k=-1.
linalg.banded_triangular_solve: use tf.linalg.triangular_solve with the dense matrix.
linalg.eigh_tridiagonal: use tf.linalg.eigh with the dense matrix, or
    jax.scipy.linalg.eigh_tridiagonal.
raw_ops: call each operation by its own name: tf.math.add for AddV2, tf.matmul for BatchMatMulV2.
    Arguments may have other names.
quantization: XLA has no tensors of quantized types. A Keras model has model.quantize for its
    layers. To round numbers to steps, and let gradients through: x + tf.stop_gradient(tf.round(x /
    step) * step - x).
test.compute_gradient: use jax.test_util.check_grads(lambda x: jnp.asarray(f(x)),
    (jnp.asarray(x),), order=1), which compares gradients with finite differences.
test.disable_with_predicate: use unittest.skipIf.
test.is_cpu_target_available: programs are compiled for this machine: see Python's
    platform.machine().
test.with_eager_op_as_function: operations run as programs already: leave it out.
conv: use tf.nn.convolution, which has the same for any number of dimensions.
hessians: differentiate twice: outer.jacobian(inner.gradient(y, x), x), with inner in outer.
edit_distance: compute it on the host, by a package such as rapidfuzz or jiwer.
fingerprint: use tf.strings.to_hash_bucket_fast, or hashlib on x.numpy().tobytes().
extract_volume_patches: use jax.lax.conv_general_dilated_patches(jnp.asarray(x), ...); for images
    tf.image.extract_patches.
random_index_shuffle: use tf.random.experimental.stateless_shuffle(tf.range(n), seed).
sysconfig: nothing is compiled against this package. tf.config.list_physical_devices() and
    jax.print_environment_info() say what there is.
nondifferentiable_batch_function: calls are not batched by a server here.
security tools: there is nothing in it for programs.
nn.dilation2d: use tf.nn.max_pool2d(x, ...), for a flat filter.
nn.erosion2d: use -tf.nn.max_pool2d(-x, ...), for a flat filter.
nn.fractional_avg_pool nn.fractional_max_pool: use tf.nn.avg_pool2d or tf.nn.max_pool2d, or
    tf.image.resize for another size.
nn.with_space_to_batch required_space_to_batch_paddings: convolutions take dilations=;
    tf.space_to_batch takes paddings.
nn.depthwise_conv2d_backprop_*: take the gradient of tf.nn.depthwise_conv2d with a tf.GradientTape.
nn.ctc_unique_labels: tf.nn.ctc_loss needs no unique=: leave it out.
nn.collapse_repeated: tf.nn.ctc_greedy_decoder does it for logits; itertools.groupby for one row of
    labels.
math.approx_max_k math.approx_min_k nn.approx_max_k nn.approx_min_k approx_top_k: use tf.math.top_k,
    of -x for the smallest; on a TPU jax.lax.approx_max_k(jnp.asarray(x), k).
nn.isotonic_regression: use sklearn.isotonic.isotonic_regression, on NumPy arrays.
signal.mdct signal.inverse_mdct: use tf.signal.stft and tf.signal.inverse_stft.
signal.kaiser_bessel_derived_window: use tf.signal.kaiser_window.
signal.vorbis_window: compute it: sin(pi / 2 * sin(pi * (i + 0.5) / n) ** 2).
random.all_candidate_sampler random.fixed_unigram_candidate_sampler
    random.learned_unigram_candidate_sampler nn.all_candidate_sampler
    nn.fixed_unigram_candidate_sampler nn.learned_unigram_candidate_sampler: use
    tf.random.log_uniform_candidate_sampler. A loss takes other draws, too: sampled_values=(classes,
    true_expected_count, expected_count).
nn.compute_accidental_hits: give tf.nn.sampled_softmax_loss or tf.nn.nce_loss
    remove_accidental_hits=True.
data.experimental.Reducer data.experimental.group_by_reducer: use tf.data.Dataset.group_by_window,
    with group.reduce in its reduce_func.
data.experimental.TFRecordWriter: use tf.io.TFRecordWriter, in a loop over the dataset.
train.experimental: a checkpoint is one file, which is not split, and keeps the state of Python
    objects as strings: tf.Variable(json.dumps(state)).
lookup.experimental.DenseHashTable: use tf.lookup.experimental.MutableHashTable, for all keys.
gfile: use tf.io.gfile.
nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse: take ragged ids: with rows =
    tf.nn.embedding_lookup(table, ids), tf.reduce_sum(rows, axis=1) combines each row's, and is 0
    for an empty one; for means, divide by tf.cast(tf.maximum(ids.row_lengths(), 1), rows.dtype)[:,
    None].
nn.RNNCellDeviceWrapper nn.RNNCellDropoutWrapper nn.RNNCellResidualWrapper: use the layers of
    tf.keras.layers.
strings.unicode_script: Python does not know scripts. See unicodedata.name(chr(number)), which
    begins with that of a letter.
config.experimental.enable_mlir_bridge config.experimental.disable_mlir_bridge: XLA has no such
    bridge.
config.experimental.ClusterDeviceFilters: each process sees the devices of all: see
    jaxvars.parallel.initialize.
summary.graph: it is for TensorFlow's graphs; there are scalar, histogram, image, audio and text;
    the picture of a function is fn.get_concrete_function(...).graph.picture.
summary.write: it is for a tensor with a plugin's metadata; there are scalar, histogram, image,
    audio and text; the picture of a function is fn.get_concrete_function(...).graph.picture.
test.Benchmark: jaxvars.profiler.profile shows where the time of a step goes.
test.benchmark_config: there are no sessions to configure.
test.assert_equal_graph_def: there are no graphs to compare.
test.create_local_cluster: mpirun, Slurm or Ray start processes: jaxvars.parallel.initialize.
test.experimental: there is nothing to wait for but values: tensor.numpy().
experimental.dispatch_for_api experimental.dispatch_for_unary_elementwise_apis
    experimental.dispatch_for_binary_elementwise_apis
    experimental.dispatch_for_binary_elementwise_assert_apis experimental.unregister_dispatch_for:
    operations are not dispatched on classes. Give the class methods, or Python operators.
experimental.StructuredTensor experimental.RowPartition: tf.RaggedTensor is here, with its
    row_splits, row_lengths() and bounding_shape().
experimental.BatchableExtensionType experimental.ExtensionTypeBatchEncoder: tf.map_fn and tf.data
    take structures. Use ExtensionType, and map over its fields.
experimental.register_filesystem_plugin: files are opened by Python and orbax: see fsspec and etils.
experimental.dtensor: tensors on meshes are those of JAX: jax.make_mesh and jax.sharding.
experimental.tensorrt: everything is compiled by XLA.
experimental.enable_strict_mode: it is strict already.
experimental.async_scope experimental.async_clear_error experimental.function_executor_type:
    operations always run asynchronously, and an error is raised where a value is read.
profiler.ProfileOptionBuilder profiler.Profiler profiler.advise profiler.profile: there is
    tf.profiler.experimental; jv.profiler.profile shows where the time of a step goes.
train.AdadeltaOptimizer: use tf.keras.optimizers.Adadelta.
train.AdagradOptimizer: use tf.keras.optimizers.Adagrad.
train.AdamOptimizer: use tf.keras.optimizers.Adam.
train.FtrlOptimizer: use tf.keras.optimizers.Ftrl.
train.RMSPropOptimizer: use tf.keras.optimizers.RMSprop.
train.GradientDescentOptimizer: use tf.keras.optimizers.SGD(learning_rate).
train.MomentumOptimizer: use tf.keras.optimizers.SGD(learning_rate, momentum).
train.Saver: use tf.train.Checkpoint, or tf.train.CheckpointManager.
train.get_or_create_global_step: count in a tf.Variable; an optimizer has its own: iterations.
io.parse_sequence_example: it is not read here. Use VarLenFeature, or FixedLenSequenceFeature, which
    pads, with parse_example.
io.match_filenames_once io.matching_files: use tf.io.gfile.glob.
distribute.*ParameterServerStrategy: MirroredStrategy runs on all devices of JAX's default kind,
    TPUs too, and MultiWorkerMirroredStrategy on those of all processes.
distribute.*DistributedValues distribute.*DistributedIterator distribute.*StrategyExtended: a step
    runs once for all devices, and its values are tensors of the whole batch.
distribute.*Server distribute.*cluster_resolver distribute.*coordinator: processes are started by
    mpirun, Slurm or Ray, and meet in jaxvars.parallel.initialize.
saved_model.SAVED_MODEL_FILENAME_PB saved_model.SAVED_MODEL_FILENAME_PBTXT: the file is called
    tf.saved_model.FILE.
saved_model.SAVED_MODEL_SCHEMA_VERSION: the file says its own format: jaxvars.export.
saved_model.VARIABLES_DIRECTORY saved_model.VARIABLES_FILENAME: variables are in the file
    tf.saved_model.FILE, too.
saved_model.DEBUG_DIRECTORY saved_model.DEBUG_INFO_FILENAME_PB: programs have no debug information.
sparse.eye: use tf.sparse.from_dense(tf.eye(rows, columns)).
sparse.maximum sparse.minimum: use tf.maximum or tf.minimum of tf.sparse.to_dense(x) of each, and
    tf.sparse.from_dense.
sparse.split: cut it with tf.sparse.slice(x, start, size).
sparse.reset_shape: use tf.SparseTensor(x.indices, x.values, new_shape).
sparse.fill_empty_rows: use tf.RaggedTensor.from_sparse(x), whose empty rows are rows of length 0.
sparse.to_indicator: use tf.reduce_max(tf.one_hot(tf.sparse.to_dense(x, -1), size), axis=-2), where
    no number is -1.
sparse.mask: use tf.boolean_mask, of x.indices and of x.values.
sparse.segment_sum sparse.segment_mean: pick the rows first: tf.math.segment_sum(tf.gather(data,
    indices), segment_ids), or tf.math.segment_mean.
sparse.segment_sqrt_n math.unsorted_segment_sqrt_n: divide sums by tf.sqrt of how many they are of:
    tf.math.unsorted_segment_sum(x, ids, n) by that of tf.ones_like(x).
image.non_max_suppression_overlaps: use tf.image.non_max_suppression, which takes the boxes.
image.extract_glimpse: use tf.image.crop_and_resize, with a box for each image.
nn.ctc_beam_search_decoder: use tf.keras.ops.ctc_decode(inputs, lengths, strategy='beam_search'), or
    tf.nn.ctc_greedy_decoder.
nn.normalize_moments nn.sufficient_statistics nn.weighted_moments: use tf.nn.moments, or sums:
    tf.reduce_sum(w * x) / tf.reduce_sum(w).
nn.log_poisson_loss: use tf.exp(log_input) - targets * log_input.
nn.batch_norm_with_global_normalization: use tf.nn.batch_normalization(x, mean, variance, beta,
    gamma, epsilon).
nn.atrous_conv2d: use tf.nn.conv2d(x, filters, 1, padding, dilations=rate).
nn.atrous_conv2d_transpose: use tf.nn.conv2d_transpose(x, filters, output_shape, 1, padding,
    dilations=rate).
strings.ngrams: use tf.strings.join([words[:-1], words[1:]], ' '); tf.keras.layers.TextVectorization
    takes ngrams=.
strings.to_hash_bucket strings.to_hash_bucket_strong: use tf.strings.to_hash_bucket_fast; its
    numbers are others.
strings.unsorted_segment_join: use tf.strings.reduce_join(tf.RaggedTensor.from_value_rowids(x, ids),
    axis=1), for sorted ids.
strings.unicode_transcode: use tf.strings.unicode_encode(tf.strings.unicode_decode(x, 'UTF-8'),
    'UTF-16-BE').
math.accumulate_n: use tf.add_n.
math.sobol_sample: use scipy.stats.qmc.Sobol(dim, scramble=False), which gives NumPy arrays.
linalg.lu_matrix_inverse linalg.lu_reconstruct linalg.lu_solve: use tf.linalg.inv or tf.linalg.solve
    with the matrix itself.
parallel_stack: use tf.stack.
guarantee_const: leave it out: what does not change is found by XLA.
shape_n: use [tf.shape(x) for x in tensors].
io.decode_compressed: use Python's zlib or gzip on x.numpy(); tf.data.TFRecordDataset takes
    compression_type=.
debugging.assert_same_float_dtype: use tf.debugging.assert_type(x, dtype) for each.
debugging.assert_proper_iterable: use isinstance(x, (list, tuple)).
random.stateless_parameterized_truncated_normal: use tf.random.stateless_truncated_normal;
    jax.random.truncated_normal takes limits.
config.experimental.get_device_policy config.experimental.set_device_policy: tensors are copied
    between devices as operations need them: leave it out.
config.experimental.get_synchronous_execution config.experimental.set_synchronous_execution: to a
    program, operations run one after the other: leave it out.
ragged.row_splits_to_segment_ids: use tf.RaggedTensor.from_row_splits(x, splits).value_rowids().
ragged.segment_ids_to_row_splits: use tf.RaggedTensor.from_value_rowids(x, ids).row_splits.
data.experimental.map_and_batch data.experimental.parallel_interleave
    data.experimental.shuffle_and_repeat: use the methods of tf.data.Dataset:
    dataset.map(f).batch(n), dataset.interleave(f), dataset.shuffle(n).repeat().
data.experimental.copy_to_device data.experimental.prefetch_to_device: use tf.data.Dataset.prefetch:
    JAX sends elements to the device that uses them.
data.experimental.get_structure: use dataset.element_spec.
data.experimental.get_next_as_optional: use iterator.get_next_as_optional().
nn.pool: use tf.nn.avg_pool or tf.nn.max_pool; jax.lax.reduce_window takes dilations, too.
io.encode_base64 io.decode_base64: use Python's base64.urlsafe_b64encode on x.numpy(), and
    base64.urlsafe_b64decode.
image.rgb_to_yiq image.yiq_to_rgb: use tf.image.rgb_to_yuv, or tf.tensordot with the matrix.
compat.path_to_str compat.path_to_bytes: use Python's os.fspath and os.fsencode.
compat.as_str_any: use str(x), or tf.compat.as_str for bytes.
compat.forward_compatible: programs of all days are read: it is True.
compat.bytes_or_text_types: use (bytes, str).
compat.integral_types compat.real_types compat.complex_types: use numbers.Integral, numbers.Real and
    numbers.Complex of Python.
sparse.cross sparse.cross_hashed: use tf.keras.layers.HashedCrossing.
sparse.bincount: use tf.math.bincount(tf.cast(x.values, tf.int32)).
distribute.*PreemptionCheckpointHandler distribute.*TerminationConfig: ask
    jaxvars.parallel.is_preempted(step) in each step; tf.train.CheckpointManager.save saves then.
distribute.InputReplicationMode: a dataset function is called once for each process: leave it out.
"""
"""Names, as after `tf.`, and the reason; a row goes on in the lines that are indented."""

_PARTS = [row.split(": ", 1) for row in _ROWS.strip().replace("\n    ", " ").splitlines()]
WHY = {name: why for names, why in _PARTS for name in names.split()}
"""The reason, by name."""


def reason(name: str) -> str:
    """Return why a name of TensorFlow's is not there; nothing if it is not known.

    >>> reason("xla")
    'everything is compiled by XLA: @tf.function is enough.'
    >>> reason("linalg.LinearOperatorDiag") == WHY["linalg.LinearOperator*"]
    True
    """
    return next((why for known, why in WHY.items() if fnmatchcase(name, known)), "")
