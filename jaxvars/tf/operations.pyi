# Written by tests/write_stubs.py: what type checkers know of tf.
import builtins
from typing import Any

from jaxvars.tf.tensors.tensor import Tensor

from jaxvars.tf.tensors.dtypes import DType as DType
from jaxvars.tf.tensors.specs import IndexedSlicesSpec as IndexedSlicesSpec
from jaxvars.tf.tensors.specs import NoneTensorSpec as NoneTensorSpec
from jaxvars.tf.data.generators.optional import OptionalSpec as OptionalSpec
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec as RaggedTensorSpec
from jaxvars.tf.tensors.sparse_tensor import SparseTensor as SparseTensor
from jaxvars.tf.tensors.specs import SparseTensorSpec as SparseTensorSpec
from jaxvars.tf.data.spec_of import TensorArraySpec as TensorArraySpec
from jaxvars.tf.tensors.specs import TypeSpec as TypeSpec
from jaxvars.tf.debugging.comparisons import assert_equal as assert_equal
from jaxvars.tf.debugging.comparisons import assert_greater as assert_greater
from jaxvars.tf.debugging.comparisons import assert_less as assert_less
from jaxvars.tf.debugging import assert_rank as assert_rank
from jaxvars.tf import audio as audio
bfloat16: DType
bool: DType
from jaxvars.tf import compat as compat
complex128: DType
complex64: DType
from jaxvars.tf import config as config
from jaxvars.tf import data as data
from jaxvars.tf import debugging as debugging
from jaxvars.tf import distribute as distribute
double: DType
from jaxvars.tf import dtypes as dtypes
from jaxvars.tf import experimental as experimental
float16: DType
float32: DType
float64: DType
from jaxvars.tf.control.environment import get_current_name_scope as get_current_name_scope
from jaxvars.tf.control.environment import get_logger as get_logger
half: DType
from jaxvars.tf import image as image
from jaxvars.tf.keras import initializers as initializers
int16: DType
int32: DType
int64: DType
int8: DType
from jaxvars.tf import io as io
from jaxvars.tf.control.environment import is_symbolic_tensor as is_symbolic_tensor
from jaxvars.tf import lookup as lookup
from jaxvars.tf.keras import losses as losses
from jaxvars.tf.io.tensors import make_ndarray as make_ndarray
from jaxvars.tf.io.tensors import make_tensor_proto as make_tensor_proto
from jaxvars.tf.keras import metrics as metrics
from jaxvars.tf.keras import optimizers as optimizers
from jaxvars.tf import profiler as profiler
qint16: DType
qint32: DType
qint8: DType
quint16: DType
quint8: DType
from jaxvars.tf import saved_model as saved_model
from jaxvars.tf import sets as sets
from jaxvars.tf import sparse as sparse
string: DType
from jaxvars.tf import strings as strings
from jaxvars.tf import summary as summary
from jaxvars.tf import test as test
from jaxvars.tf.control.environment import timestamp as timestamp
from jaxvars.tf import train as train
tuple: Any
from jaxvars.tf.data.spec_of import type_spec_from_value as type_spec_from_value
from jaxvars.tf import types as types
uint16: DType
uint32: DType
uint64: DType
uint8: DType
from jaxvars.tf import version as version
def abs(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the absolute value; of complex numbers, the real one."""
def acos(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the angle of a cosine."""
def acosh(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the inverse of the hyperbolic cosine."""
def add(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Add, element by element; join strings."""
def add_n(inputs: Any, name: builtins.str | None = ...) -> Tensor: """Add tensors of one shape."""
def argmax(input: Any, axis: Any = ..., output_type: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return where the greatest element along an axis is: the first one if there are more."""
def argmin(input: Any, axis: Any = ..., output_type: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return where the smallest element along an axis is: the first one if there are more."""
def argsort(values: Any, axis: Any = ..., direction: Any = ..., stable: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the indices that sort along a dimension."""
def as_string(input: Any, precision: Any = ..., scientific: Any = ..., shortest: Any = ..., width: Any = ..., fill: Any = ..., name: builtins.str | None = ...) -> Tensor: """Write numbers as strings, and strings in a width."""
def asin(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the angle of a sine."""
def asinh(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the inverse of the hyperbolic sine."""
def atan(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the angle of a tangent."""
def atan2(y: Any, x: Any, name: builtins.str | None = ...) -> Tensor: """Return the angle of the point (x, y)."""
def atanh(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the inverse of the hyperbolic tangent."""
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: builtins.str | None = ...) -> Tensor: """Put blocks from the batch together, the inverse of `tf.space_to_batch`."""
def bitcast(input: Any, type: Any, name: builtins.str | None = ...) -> Tensor: """Read the bits of a tensor as another type."""
def boolean_mask(tensor: Any, mask: Any, axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Take the elements or slices for which a mask is true."""
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any, name: builtins.str | None = ...) -> Any: """Return the shape of what two shapes, as tensors, are broadcast to."""
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Any: """Return the shape of what two shapes are broadcast to; sizes may be None."""
def broadcast_to(input: Any, shape: Any, name: builtins.str | None = ...) -> Tensor: """Broadcast to a shape."""
def cast(x: Any, dtype: Any, name: builtins.str | None = ...) -> Tensor: """Convert to another type."""
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = ..., name: builtins.str | None = ...) -> builtins.tuple[Any, Tensor]: """Scale a list of tensors down to a common norm, if it is greater; return both."""
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = ..., name: builtins.str | None = ...) -> Tensor: """Scale down to a Euclidean norm, if it is greater."""
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: builtins.str | None = ...) -> Tensor: """Replace values below and above the limits by these."""
def complex(real: Any, imag: Any, name: builtins.str | None = ...) -> Tensor: """Make complex numbers of their parts."""
def concat(values: Any, axis: Any, name: builtins.str | None = ...) -> Tensor: """Join tensors along a dimension."""
def cos(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the cosine of an angle in radians."""
def cosh(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the hyperbolic cosine."""
def cumsum(x: Any, axis: Any = ..., exclusive: Any = ..., reverse: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return running sums along an axis."""
def divide(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Divide; integers become floats."""
def dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: builtins.str | None = ...) -> builtins.list[Tensor]: """Cut into parts by the number of the part that each element belongs to."""
def dynamic_stitch(indices: Any, data: Any, name: builtins.str | None = ...) -> Tensor: """Put rows at indices, the inverse of `tf.dynamic_partition`."""
def eig(tensor: Any, name: builtins.str | None = ...) -> builtins.tuple[Tensor, Tensor]: """Return the eigenvalues of matrices, and their vectors in columns."""
def eigvals(tensor: Any, name: builtins.str | None = ...) -> Tensor: """Return the eigenvalues of matrices."""
def einsum(equation: builtins.str, *inputs: Any, **kwargs: Any) -> Tensor: """Multiply and add up in Einstein's notation."""
def ensure_shape(x: Any, shape: Any, name: builtins.str | None = ...) -> Tensor: """Return the tensor if its shape is compatible with another one, and raise else."""
def equal(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return the truth value of x == y, element by element; NaN equals nothing."""
def exp(x: Any, name: builtins.str | None = ...) -> Tensor: """Return e to the power of x."""
def expand_dims(input: Any, axis: Any, name: builtins.str | None = ...) -> Tensor: """Insert a dimension of size 1."""
def eye(num_rows: Any, num_columns: Any = ..., batch_shape: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make an identity matrix, or a stack of them."""
def fill(dims: Any, value: Any, name: builtins.str | None = ...) -> Tensor: """Make a tensor of one value."""
def floor(x: Any, name: builtins.str | None = ...) -> Tensor: """Round down."""
def gather(params: Any, indices: Any, validate_indices: Any = ..., axis: Any = ..., batch_dims: Any = ..., name: builtins.str | None = ...) -> Tensor: """Take slices along a dimension, by index."""
def gather_nd(params: Any, indices: Any, batch_dims: Any = ..., bad_indices_policy: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Take elements or slices, by lists of indices."""
def get_static_value(tensor: Any, partial: builtins.bool = ...) -> Any: """Return the value of a tensor as a NumPy array if it is known, else None."""
def greater(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return whether x > y, element by element."""
def greater_equal(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return whether x >= y, element by element."""
def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Count how many values are in each of the bins of a range."""
def histogram_fixed_width_bins(values: Any, value_range: Any, nbins: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the number of the bin of a range in which each value is."""
def identity(input: Any, name: builtins.str | None = ...) -> Tensor: """Return a separate tensor."""
def identity_n(input: Any, name: builtins.str | None = ...) -> builtins.list[Tensor]: """Return the tensors of a list."""
def less(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return whether x < y, element by element."""
def less_equal(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return whether x <= y, element by element."""
def linspace(start: Any, stop: Any, num: Any, axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make a sequence of numbers with equal distances, both ends included."""
def logical_and(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return whether both hold, element by element."""
def logical_not(x: Any, name: builtins.str | None = ...) -> Tensor: """Return whether it does not hold, element by element."""
def logical_or(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return whether one holds, element by element."""
def matmul(a: Any, b: Any, transpose_a: builtins.bool = ..., transpose_b: builtins.bool = ..., adjoint_a: builtins.bool = ..., adjoint_b: builtins.bool = ..., a_is_sparse: builtins.bool = ..., b_is_sparse: builtins.bool = ..., output_type: Any = ..., name: builtins.str | None = ...) -> Tensor: """Multiply matrices, or stacks of them."""
def matrix_square_root(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the square root of matrices; NaN if it is not real."""
def maximum(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return the greater one of each pair."""
def meshgrid(*args: Any, **kwargs: Any) -> builtins.list[Tensor]: """Return the coordinates of a grid, one tensor for each axis."""
def minimum(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return the smaller one of each pair."""
def multiply(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Multiply, element by element."""
def negative(x: Any, name: builtins.str | None = ...) -> Tensor: """Change the sign."""
def norm(tensor: Any, ord: Any = ..., axis: Any = ..., keepdims: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the norm of vectors, or of matrices."""
def not_equal(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return the truth value of x != y, element by element."""
def one_hot(indices: Any, depth: Any, on_value: Any = ..., off_value: Any = ..., axis: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Put one value at each index and another one elsewhere."""
def ones(shape: Any, dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make a tensor of ones."""
def ones_like(input: Any, dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make a tensor of ones with the shape of another one."""
def pad(tensor: Any, paddings: Any, mode: builtins.str = ..., constant_values: Any = ..., name: builtins.str | None = ...) -> Tensor: """Pad with a constant, or by reflection."""
def pow(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Raise to a power, element by element."""
def range(start: Any, limit: Any = ..., delta: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make a sequence of numbers, from `start` to before `limit`."""
def rank(input: Any, name: builtins.str | None = ...) -> Any: """Return the number of dimensions."""
def realdiv(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Divide floats."""
def reduce_all(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return whether all are true, along one axis, several, or all."""
def reduce_any(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return whether one is true, along one axis, several, or all."""
def reduce_logsumexp(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return log(sum(exp(x))), without overflow."""
def reduce_max(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return the greatest elements, along one axis, several, or all."""
def reduce_mean(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return the mean, along one axis, several, or all; of integers, an integer."""
def reduce_min(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return the smallest elements, along one axis, several, or all."""
def reduce_prod(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Multiply, along one axis, several, or all."""
def reduce_sum(input_tensor: Any, axis: Any = ..., keepdims: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Add up, along one axis, several, or all."""
def repeat(input: Any, repeats: Any, axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Repeat each element, or each slice along an axis."""
def reshape(tensor: Any, shape: Any, name: builtins.str | None = ...) -> Tensor: """Give another shape to the same elements."""
def reverse(tensor: Any, axis: Any, name: builtins.str | None = ...) -> Tensor: """Reverse along some dimensions."""
def reverse_sequence(input: Any, seq_lengths: Any, seq_axis: Any = ..., batch_axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Reverse the first steps of each sequence of a batch."""
def roll(input: Any, shift: Any, axis: Any, name: builtins.str | None = ...) -> Tensor: """Shift elements along dimensions, around."""
def round(x: Any, name: builtins.str | None = ...) -> Tensor: """Round to the next integer, halves to even."""
def saturate_cast(value: Any, dtype: Any, name: builtins.str | None = ...) -> Tensor: """Convert, with what is too small or large replaced by the limits of the type."""
def scalar_mul(scalar: Any, x: Any, name: builtins.str | None = ...) -> Tensor: """Multiply by one number."""
def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Add parts, by lists of indices, to zeros."""
def searchsorted(sorted_sequence: Any, values: Any, side: Any = ..., out_type: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return where values would have to be put into sorted sequences."""
def sequence_mask(lengths: Any, maxlen: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Mark the first positions: as many as each length."""
def shape(input: Any, out_type: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the sizes of the dimensions."""
def sigmoid(x: Any, name: builtins.str | None = ...) -> Tensor: """Return 1 / (1 + exp(-x))."""
def sign(x: Any, name: builtins.str | None = ...) -> Tensor: """Return -1, 0 or 1; of complex numbers, x / |x|."""
def sin(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the sine of an angle in radians."""
def sinh(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the hyperbolic sine."""
def size(input: Any, out_type: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the number of elements."""
def slice(input_: Any, begin: Any, size: Any, name: builtins.str | None = ...) -> Tensor: """Take a part by start and size."""
def sort(values: Any, axis: Any = ..., direction: Any = ..., name: builtins.str | None = ...) -> Tensor: """Sort along a dimension."""
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: builtins.str | None = ...) -> Tensor: """Cut blocks of the spatial dimensions apart, into the batch."""
def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: builtins.str | None = ...) -> Tensor: """Cut blocks of the spatial dimensions apart, into the batch."""
def split(value: Any, num_or_size_splits: Any, axis: Any = ..., num: Any = ..., name: builtins.str | None = ...) -> builtins.list[Tensor]: """Cut into a number of equal parts, or into parts of given sizes."""
def sqrt(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the square root."""
def square(x: Any, name: builtins.str | None = ...) -> Tensor: """Return x * x."""
def squeeze(input: Any, axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Remove dimensions of size 1: all of them, or those that are named."""
def stack(values: Any, axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Join tensors along a new dimension."""
def strided_slice(input_: Any, begin: Any, end: Any, strides: Any = ..., begin_mask: builtins.int = ..., end_mask: builtins.int = ..., ellipsis_mask: builtins.int = ..., new_axis_mask: builtins.int = ..., shrink_axis_mask: builtins.int = ..., var: Any = ..., name: builtins.str | None = ...) -> Tensor: """Take a part as indexing does, by start, end and step."""
def subtract(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Subtract, element by element."""
def tan(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the tangent of an angle in radians."""
def tanh(x: Any, name: builtins.str | None = ...) -> Tensor: """Return the hyperbolic tangent."""
def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, bad_indices_policy: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Add to parts, by lists of indices."""
def tensor_scatter_nd_max(tensor: Any, indices: Any, updates: Any, bad_indices_policy: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Take the larger of parts and updates, by lists of indices."""
def tensor_scatter_nd_min(tensor: Any, indices: Any, updates: Any, bad_indices_policy: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Take the smaller of parts and updates, by lists of indices."""
def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, bad_indices_policy: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Subtract from parts, by lists of indices."""
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: builtins.str | None = ...) -> Tensor: """Replace parts, by lists of indices."""
def tensordot(a: Any, b: Any, axes: Any, name: builtins.str | None = ...) -> Tensor: """Multiply and add up over axes of both tensors."""
def tile(input: Any, multiples: Any, name: builtins.str | None = ...) -> Tensor: """Repeat a tensor along each dimension."""
def transpose(a: Any, perm: Any = ..., conjugate: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Permute the dimensions; reverse them without `perm`."""
def truediv(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Divide; integers become floats."""
def truncatediv(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Divide, and round towards zero."""
def truncatemod(x: Any, y: Any, name: builtins.str | None = ...) -> Tensor: """Return the rest of a division that rounds towards zero: of the sign of `x`."""
def unique(x: Any, out_idx: Any = ..., name: builtins.str | None = ...) -> Any: """Return the values in the order of their first use, and which of them each element is."""
def unique_with_counts(x: Any, out_idx: Any = ..., name: builtins.str | None = ...) -> Any: """Return what `tf.unique` does, and how often each value is there."""
def unravel_index(indices: Any, dims: Any, name: builtins.str | None = ...) -> Tensor: """Return the indices in each dimension of what flat indices point at."""
def unstack(value: Any, num: Any = ..., axis: Any = ..., name: builtins.str | None = ...) -> builtins.list[Tensor]: """Return a list of the slices along a dimension."""
def where(condition: Any, x: Any = ..., y: Any = ..., name: builtins.str | None = ...) -> Tensor: """Choose from two tensors by a condition; alone, return where it is true."""
def zeros(shape: Any, dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make a tensor of zeros."""
def zeros_like(input: Any, dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Make a tensor of zeros with the shape of another one."""
