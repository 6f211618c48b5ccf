"""`tf.raw_ops`: operations by the names that TensorFlow's graphs have for them.

Those are here whose arguments have the names of the public function's, and some that have none;
arguments are given by name.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any

from jaxvars.display.text import did_you_mean
from jaxvars.tf.listing import lister
from jaxvars.tf.registry.rows import TABLE, find

_NAMES = {
    "": (
        "BatchToSpaceND=batch_to_space BroadcastTo ConcatV2=concat DynamicPartition DynamicStitch "
        "ExpandDims ExtractVolumePatches Fill GatherNd GatherV2=gather GuaranteeConst "
        "HistogramFixedWidth Identity IdentityN LinSpace=linspace MatMul=matmul OneHot Pack=stack "
        "ParallelDynamicStitch=dynamic_stitch Range Rank RealDiv=realdiv Reshape "
        "ReverseV2=reverse Roll ScatterNd Shape ShapeN Size Snapshot=identity "
        "SpaceToBatchND=space_to_batch Squeeze TensorScatterAdd=tensor_scatter_nd_add "
        "TensorScatterMax=tensor_scatter_nd_max TensorScatterMin=tensor_scatter_nd_min "
        "TensorScatterSub=tensor_scatter_nd_sub TensorScatterUpdate=tensor_scatter_nd_update Tile "
        "TruncateDiv=truncatediv TruncateMod=truncatemod Unique UniqueWithCounts Unpack=unstack "
        "UnravelIndex"
    ),
    "bitwise": "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift",
    "image": (
        "AdjustContrastv2=adjust_contrast CombinedNonMaxSuppression DecodeAndCropJpeg DecodeBmp "
        "DecodeGif DecodeImage DecodeJpeg DecodePng EncodeJpeg EncodePng ExtractJpegShape "
        "StatelessSampleDistortedBoundingBox"
    ),
    "linalg": (
        "Cholesky Cross Diag=tensor_diag DiagPart=tensor_diag_part LogMatrixDeterminant=slogdet "
        "Lu MatrixBandPart=band_part MatrixDeterminant=det MatrixDiagPartV3=diag_part "
        "MatrixDiagV3=diag MatrixInverse=inv MatrixLogarithm=logm MatrixSetDiagV3=set_diag "
        "MatrixSolve=solve MatrixSolveLs=lstsq MatrixSquareRoot=sqrtm "
        "MatrixTriangularSolve=triangular_solve Qr"
    ),
    "math": (
        "Abs Acos Acosh Add AddN AddV2=add Asin Asinh Atan2 Atan Atanh Betainc Ceil Cos Cosh "
        "Cumprod Cumsum CumulativeLogsumexp Digamma DivNoNan=divide_no_nan Erf Erfc Erfinv Exp "
        "Expm1 Floor FloorDiv=floordiv FloorMod=floormod Greater GreaterEqual Igamma Igammac "
        "InTopKV2=in_top_k InvertPermutation IsFinite IsInf IsNan Less LessEqual Lgamma Log "
        "LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul=multiply MulNoNan=multiply_no_nan "
        "Ndtri Neg=negative NextAfter=nextafter Polygamma Pow Reciprocal Rint Round Rsqrt "
        "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum Sigmoid Sign Sin Sinh "
        "SobolSample Softplus Softsign Sqrt Square SquaredDifference Sub=subtract Tan Tanh "
        "TopKV2=top_k UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd "
        "UnsortedSegmentSum Xdivy Xlogy Zeta"
    ),
    "math.special": (
        "BesselI0 BesselI1 BesselJ0 BesselJ1 BesselK0 BesselK1 BesselY0 BesselY1 Dawsn Expint "
        "FresnelCos FresnelSin Spence"
    ),
    "nn": (
        "BiasAdd DepthToSpace Elu L2Loss LRN=local_response_normalization LeakyRelu LogSoftmax "
        "Relu6 Relu Selu Softmax SpaceToDepth"
    ),
    "quantization": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars "
        "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel "
        "QuantizeAndDequantizeV2"
    ),
    "raw_ops": "FusedBatchNormV2=FusedBatchNormV3 FusedBatchNormV3=FusedBatchNormV3",
    "signal": "FFT2D=fft2d FFT3D=fft3d FFT IFFT2D=ifft2d IFFT3D=ifft3d IFFT",
    "strings": (
        "AsString RegexFullMatch RegexReplace StringFormat=format StringJoin=join "
        "StringLength=length StringLower=lower StringStrip=strip "
        "StringToHashBucketFast=to_hash_bucket_fast "
        "StringToHashBucketStrong=to_hash_bucket_strong StringUpper=upper Substr UnicodeTranscode "
        "UnsortedSegmentJoin"
    ),
}  # fmt: skip
"""By namespace: operations, with the public function where that is not the name in snake case."""


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


_PUBLIC = {
    op: f"{space}.{name or _snake_case(op)}".removeprefix(".")
    for space, words in _NAMES.items()
    for op, _, name in (word.partition("=") for word in words.split())
}
_RESULTS = {"FusedBatchNormV2": 5}
"""How many results it has, of those of the function."""
_LAZY = frozenset({"image", "quantization", "strings"})


def __getattr__(name: str) -> Any:
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


def _by_name(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes its arguments by name only."""

    @functools.wraps(function)
    def operation(**arguments: Any) -> Any:
        result = function(**arguments)
        return result[: _RESULTS[name]] if name in _RESULTS else result

    operation.__name__ = operation.__qualname__ = name
    return operation


__dir__ = lister(__name__, _PUBLIC)
