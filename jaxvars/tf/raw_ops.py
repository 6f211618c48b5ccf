"""`tf.raw_ops`: operations by the names that TensorFlow's graphs have for them.

Those are here that do what a public function does, and some that no public function does;
arguments are given by name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import typing
from collections.abc import Callable

from jaxvars.display.text import did_you_mean
from jaxvars.tf.listing import lister
from jaxvars.tf.registry.rows import TABLE, find

_NAMES = {
    "": (
        "ApproxTopK BatchToSpaceND=batch_to_space BroadcastTo ClipByValue ConcatV2=concat "
        "DynamicPartition DynamicStitch ExpandDims ExtractVolumePatches Fill Gather GatherNd "
        "GatherV2=gather GuaranteeConst HistogramFixedWidth Identity IdentityN LinSpace=linspace "
        "MatMul=matmul OneHot Pack=stack ParallelDynamicStitch=dynamic_stitch Range Rank "
        "RealDiv=realdiv Reshape ReverseV2=reverse Roll ScatterNd Shape ShapeN Size "
        "Snapshot=identity SpaceToBatchND=space_to_batch Squeeze "
        "TensorScatterAdd=tensor_scatter_nd_add TensorScatterMax=tensor_scatter_nd_max "
        "TensorScatterMin=tensor_scatter_nd_min TensorScatterSub=tensor_scatter_nd_sub "
        "TensorScatterUpdate=tensor_scatter_nd_update Tile TruncateDiv=truncatediv "
        "TruncateMod=truncatemod Unique UniqueWithCounts Unpack=unstack UnravelIndex Where"
    ),
    "bitwise": "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift",
    "image": (
        "AdjustContrastv2=adjust_contrast CombinedNonMaxSuppression DecodeAndCropJpeg DecodeBmp "
        "DecodeGif DecodeImage DecodeJpeg DecodePng DrawBoundingBoxesV2=draw_bounding_boxes "
        "EncodeJpeg EncodePng ExtractJpegShape HSVToRGB=hsv_to_rgb NonMaxSuppression "
        "NonMaxSuppressionV2=non_max_suppression NonMaxSuppressionV3=non_max_suppression "
        "RGBToHSV=rgb_to_hsv StatelessSampleDistortedBoundingBox"
    ),
    "linalg": (
        "Cholesky Cross Diag=tensor_diag DiagPart=tensor_diag_part LogMatrixDeterminant=slogdet "
        "Lu MatrixBandPart=band_part MatrixDeterminant=det MatrixDiagPartV3=diag_part "
        "MatrixDiagV3=diag MatrixInverse=inv MatrixLogarithm=logm MatrixSetDiagV3=set_diag "
        "MatrixSolve=solve MatrixSolveLs=lstsq MatrixSquareRoot=sqrtm "
        "MatrixTriangularSolve=triangular_solve Qr TridiagonalSolve"
    ),
    "math": (
        "Abs AccumulateNV2=accumulate_n Acos Acosh Add AddN AddV2=add Asin Asinh Atan Atan2 Atanh "
        "Betainc Ceil Cos Cosh Cumprod Cumsum CumulativeLogsumexp Digamma DivNoNan=divide_no_nan "
        "Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv=floordiv FloorMod=floormod Greater "
        "GreaterEqual Igamma Igammac InTopK InTopKV2=in_top_k Inv=reciprocal InvertPermutation "
        "IsFinite IsInf IsNan Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr "
        "Maximum Minimum Mul=multiply MulNoNan=multiply_no_nan Ndtri Neg=negative "
        "NextAfter=nextafter NotEqual Polygamma Pow Reciprocal Rint Round Rsqrt SegmentMax "
        "SegmentMean SegmentMin SegmentProd SegmentSum Sigmoid Sign Sin Sinh SobolSample Softplus "
        "Softsign Sqrt Square SquaredDifference Sub=subtract Tan Tanh TopK TopKV2=top_k "
        "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum Xdivy "
        "Xlog1py Xlogy Zeta"
    ),
    "math.special": (
        "BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 "
        "BesselK1e BesselY0 BesselY1 Dawsn Expint FresnelCos FresnelSin Spence"
    ),
    "nn": (
        "AvgPool3D=avg_pool3d BiasAdd DepthToSpace DepthwiseConv2dNative=depthwise_conv2d Elu "
        "L2Loss LeakyRelu LogSoftmax LRN=local_response_normalization MaxPool=max_pool2d "
        "MaxPool3D=max_pool3d MaxPoolV2=max_pool2d Relu Relu6 Selu Softmax SpaceToDepth"
    ),
    "quantization": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars "
        "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel "
        "FakeQuantWithMinMaxVarsPerChannelGradient QuantizeAndDequantizeV2"
    ),
    "raw_ops": "FusedBatchNormV2=FusedBatchNormV3 FusedBatchNormV3=FusedBatchNormV3",
    "signal": "FFT FFT2D=fft2d FFT3D=fft3d IFFT IFFT2D=ifft2d IFFT3D=ifft3d",
    "strings": (
        "AsString RegexFullMatch RegexReplace StringFormat=format StringJoin=join "
        "StringLength=length StringLower=lower StringStrip=strip "
        "StringToHashBucketFast=to_hash_bucket_fast "
        "StringToHashBucketStrong=to_hash_bucket_strong StringUpper=upper Substr UnicodeTranscode "
        "UnsortedSegmentJoin"
    ),
}  # fmt: skip
"""By namespace: operations, with the public function where that is not the name in snake case."""

_RENAMED = {
    "input=input_tensor keep_dims=keepdims": (
        "All=math.reduce_all Any=math.reduce_any EuclideanNorm=math.reduce_euclidean_norm "
        "Max=math.reduce_max Mean=math.reduce_mean Min=math.reduce_min Prod=math.reduce_prod "
        "Sum=math.reduce_sum"
    ),
    "dimension=axis": "ArgMax=math.argmax ArgMin=math.argmin",
    "value=input": "AvgPool=nn.avg_pool2d",
    "images=image": "AdjustHue=image.adjust_hue",
    "images=image scale=saturation_factor": "AdjustSaturation=image.adjust_saturation",
    "matrix=bands": "BandedTriangularSolve=linalg.banded_triangular_solve",
    "x=a y=b adj_x=adjoint_a adj_y=adjoint_b": "BatchMatMul=matmul BatchMatMulV2=matmul",
    "DstT=dtype": "Cast=cast",
    "concat_dim=axis": "Concat=concat",
    "input=x": "Conj=math.conj EnsureShape=ensure_shape",
    "filter=filters": "Conv2D=nn.conv2d Conv3D=nn.conv3d",
    "box_ind=box_indices": "CropAndResize=image.crop_and_resize",
    "input=input_tensor": (
        "IRFFT=signal.irfft IRFFT2D=signal.irfft2d IRFFT3D=signal.irfft3d RFFT=signal.rfft "
        "RFFT2D=signal.rfft2d RFFT3D=signal.rfft3d"
    ),
    "sorted_inputs=sorted_sequence": "LowerBound=searchsorted",
    "Targmax=output_dtype": "MaxPoolWithArgmax=nn.max_pool_with_argmax",
    "input=tensor": "MirrorPad=pad Pad=pad PadV2=pad SelfAdjointEigV2=linalg.eigh",
    "x=input": "OnesLike=ones_like ZerosLike=zeros_like",
    "reduction_indices=axis keep_dims=keepdims": "ReduceJoin=strings.reduce_join",
    "seq_dim=seq_axis batch_dim=batch_axis": "ReverseSequence=reverse_sequence",
    "t=x e=y": "SelectV2=where",
    "input=input_": "Slice=slice StridedSlice=strided_slice",
    "num_split=num_or_size_splits": "Split=split",
    "size_splits=num_or_size_splits num_split=num": "SplitV=split",
    "string_tensor=input": (
        "StringToHashBucket=strings.to_hash_bucket StringToNumber=strings.to_number"
    ),
    "x=a": "Transpose=transpose",
}  # fmt: skip
"""By other names that arguments have: operations, with the public functions."""


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _pairs(words: str) -> dict[str, str]:
    """Return what names stand for, where they stand in words like `name=other`.

    >>> _pairs("Sum=reduce_sum Abs")
    {'Sum': 'reduce_sum', 'Abs': ''}
    """
    return {name: other for name, _, other in (word.partition("=") for word in words.split())}


_PUBLIC = {
    op: f"{space}.{name or _snake_case(op)}".removeprefix(".")
    for space, words in _NAMES.items()
    for op, name in _pairs(words).items()
} | {op: name for words in _RENAMED.values() for op, name in _pairs(words).items()}
_ARGUMENTS = {op: _pairs(names) for names, words in _RENAMED.items() for op in _pairs(words)}
"""By operation: the names of the public function's arguments, for those that have others."""
_DEFAULTS = {"StringFormat": {"template": "%s", "placeholder": "%s"}}
_RESULTS = {"FusedBatchNormV2": 5}
"""How many results it has, of those of the function."""
_LAZY = frozenset({"image", "quantization", "strings"})


def __getattr__(name: str) -> typing.Any:
    if name.startswith("__"):
        raise AttributeError(name)
    public = _PUBLIC.get(name, f"raw_ops.{name}")
    space = public.partition(".")[0]
    if space in _LAZY:
        importlib.import_module(f"jaxvars.tf.{space}")
    if (function := find(public)) is None:
        raise AttributeError(f"tf.raw_ops has no attribute {name!r}. {_advice(name)}")
    made = globals()[name] = _by_name(name, function)
    return made


def _advice(name: str) -> str:
    found = [full for full, row in TABLE.items() if name in (row.op, full.split(".")[-1].title())]
    if found:
        return f"Its public name is tf.{min(found, key=len)}, whose arguments have other names."
    return did_you_mean(name, __dir__()) or "Use the public function that does the same."


def _by_name(name: str, function: Callable[..., typing.Any]) -> Callable[..., typing.Any]:
    """Return a function that takes its arguments by name only."""
    others, defaults = _ARGUMENTS.get(name, {}), _DEFAULTS.get(name, {})
    own = {other: raw for raw, other in others.items()}
    signature = inspect.signature(function)
    named = [p.replace(name=own.get(p.name, p.name)) for p in signature.parameters.values()]
    known = {p.name for p in named}

    @functools.wraps(function)
    def operation(**arguments: typing.Any) -> typing.Any:
        for unknown in arguments.keys() - known:
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        given = {others.get(argument, argument): x for argument, x in arguments.items()}
        result = function(**defaults | given)
        return result[: _RESULTS[name]] if name in _RESULTS else result

    operation.__name__ = operation.__qualname__ = name
    operation.__signature__ = signature.replace(parameters=named)  # pyright: ignore[reportAttributeAccessIssue] - read by `inspect`
    return operation


__dir__ = lister(__name__, _PUBLIC)
