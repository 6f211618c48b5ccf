"""`tf.raw_ops`: operations by the names that TensorFlow's graphs have for them.

Those are here whose arguments have the names of the public function's; they are given by name.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from jaxvars.display.text import did_you_mean
from jaxvars.tf.listing import lister
from jaxvars.tf.registry.rows import TABLE, find

_NAMES = {
    "": (
        "BatchToSpaceND=batch_to_space BroadcastTo=broadcast_to ConcatV2=concat "
        "DynamicPartition=dynamic_partition DynamicStitch=dynamic_stitch "
        "ExpandDims=expand_dims ExtractVolumePatches=extract_volume_patches Fill=fill "
        "GatherNd=gather_nd GatherV2=gather GuaranteeConst=guarantee_const "
        "HistogramFixedWidth=histogram_fixed_width Identity=identity IdentityN=identity_n "
        "LinSpace=linspace MatMul=matmul OneHot=one_hot Pack=stack Range=range Rank=rank "
        "RealDiv=realdiv Reshape=reshape ReverseV2=reverse Roll=roll ScatterNd=scatter_nd "
        "Shape=shape ShapeN=shape_n Size=size SpaceToBatchND=space_to_batch Squeeze=squeeze "
        "TensorScatterAdd=tensor_scatter_nd_add TensorScatterMax=tensor_scatter_nd_max "
        "TensorScatterMin=tensor_scatter_nd_min TensorScatterSub=tensor_scatter_nd_sub "
        "Tile=tile TruncateDiv=truncatediv TruncateMod=truncatemod Unique=unique "
        "UniqueWithCounts=unique_with_counts Unpack=unstack UnravelIndex=unravel_index"
    ),
    "bitwise": (
        "BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor Invert=invert "
        "LeftShift=left_shift RightShift=right_shift"
    ),
    "image": (
        "AdjustContrastv2=adjust_contrast "
        "CombinedNonMaxSuppression=combined_non_max_suppression "
        "DecodeAndCropJpeg=decode_and_crop_jpeg DecodeBmp=decode_bmp DecodeGif=decode_gif "
        "DecodeImage=decode_image DecodeJpeg=decode_jpeg DecodePng=decode_png "
        "EncodeJpeg=encode_jpeg EncodePng=encode_png ExtractJpegShape=extract_jpeg_shape "
        "StatelessSampleDistortedBoundingBox=stateless_sample_distorted_bounding_box"
    ),
    "linalg": (
        "Cholesky=cholesky Cross=cross Diag=tensor_diag DiagPart=tensor_diag_part "
        "LogMatrixDeterminant=slogdet Lu=lu MatrixBandPart=band_part MatrixDeterminant=det "
        "MatrixDiagPartV3=diag_part MatrixDiagV3=diag MatrixInverse=inv MatrixLogarithm=logm "
        "MatrixSetDiagV3=set_diag MatrixSolve=solve MatrixSolveLs=lstsq "
        "MatrixSquareRoot=sqrtm MatrixTriangularSolve=triangular_solve Qr=qr"
    ),
    "math": (
        "Abs=abs Acos=acos Acosh=acosh Add=add AddN=add_n AddV2=add Asin=asin Asinh=asinh "
        "Atan2=atan2 Atan=atan Atanh=atanh Betainc=betainc Ceil=ceil Cos=cos Cosh=cosh "
        "Cumprod=cumprod Cumsum=cumsum CumulativeLogsumexp=cumulative_logsumexp "
        "Digamma=digamma DivNoNan=divide_no_nan Erf=erf Erfc=erfc Erfinv=erfinv Exp=exp "
        "Expm1=expm1 Floor=floor FloorDiv=floordiv FloorMod=floormod Greater=greater "
        "GreaterEqual=greater_equal Igamma=igamma Igammac=igammac InTopKV2=in_top_k "
        "InvertPermutation=invert_permutation IsFinite=is_finite IsInf=is_inf IsNan=is_nan "
        "Less=less LessEqual=less_equal Lgamma=lgamma Log=log LogicalAnd=logical_and "
        "LogicalNot=logical_not LogicalOr=logical_or Maximum=maximum Minimum=minimum "
        "Mul=multiply MulNoNan=multiply_no_nan Ndtri=ndtri Neg=negative NextAfter=nextafter "
        "Polygamma=polygamma Pow=pow Reciprocal=reciprocal Rint=rint Round=round Rsqrt=rsqrt "
        "SegmentMax=segment_max SegmentMean=segment_mean SegmentMin=segment_min "
        "SegmentProd=segment_prod SegmentSum=segment_sum Sigmoid=sigmoid Sign=sign Sin=sin "
        "Sinh=sinh SobolSample=sobol_sample Softplus=softplus Softsign=softsign Sqrt=sqrt "
        "Square=square SquaredDifference=squared_difference Sub=subtract Tan=tan Tanh=tanh "
        "TopKV2=top_k UnsortedSegmentMax=unsorted_segment_max "
        "UnsortedSegmentMin=unsorted_segment_min UnsortedSegmentProd=unsorted_segment_prod "
        "UnsortedSegmentSum=unsorted_segment_sum Xdivy=xdivy Xlogy=xlogy Zeta=zeta"
    ),
    "math.special": (
        "BesselI0=bessel_i0 BesselI1=bessel_i1 BesselJ0=bessel_j0 BesselJ1=bessel_j1 "
        "BesselK0=bessel_k0 BesselK1=bessel_k1 BesselY0=bessel_y0 BesselY1=bessel_y1 "
        "Dawsn=dawsn Expint=expint FresnelCos=fresnel_cos FresnelSin=fresnel_sin "
        "Spence=spence"
    ),
    "nn": (
        "BiasAdd=bias_add DepthToSpace=depth_to_space Elu=elu L2Loss=l2_loss "
        "LRN=local_response_normalization LeakyRelu=leaky_relu LogSoftmax=log_softmax "
        "Relu6=relu6 Relu=relu Selu=selu Softmax=softmax SpaceToDepth=space_to_depth"
    ),
    "quantization": (
        "FakeQuantWithMinMaxArgs=fake_quant_with_min_max_args "
        "FakeQuantWithMinMaxArgsGradient=fake_quant_with_min_max_args_gradient "
        "FakeQuantWithMinMaxVars=fake_quant_with_min_max_vars "
        "FakeQuantWithMinMaxVarsGradient=fake_quant_with_min_max_vars_gradient "
        "FakeQuantWithMinMaxVarsPerChannel=fake_quant_with_min_max_vars_per_channel "
        "QuantizeAndDequantizeV2=quantize_and_dequantize_v2"
    ),
    "signal": (
        "FFT2D=fft2d FFT3D=fft3d FFT=fft IFFT2D=ifft2d IFFT3D=ifft3d IFFT=ifft"
    ),
    "strings": (
        "AsString=as_string RegexFullMatch=regex_full_match RegexReplace=regex_replace "
        "StringFormat=format StringJoin=join StringLength=length StringLower=lower "
        "StringStrip=strip StringToHashBucketFast=to_hash_bucket_fast "
        "StringToHashBucketStrong=to_hash_bucket_strong StringUpper=upper Substr=substr "
        "UnicodeTranscode=unicode_transcode UnsortedSegmentJoin=unsorted_segment_join"
    ),
}  # fmt: skip
"""By namespace: the name of an operation, and that of the public function."""

_PUBLIC = {
    op: f"{space}.{name}" if space else name
    for space, words in _NAMES.items()
    for op, _, name in (word.partition("=") for word in words.split())
}
_LAZY = frozenset({"image", "quantization", "strings"})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in _PUBLIC:
        raise AttributeError(f"tf.raw_ops has no attribute {name!r}. {_advice(name)}")
    space = _PUBLIC[name].partition(".")[0]
    if space in _LAZY:
        importlib.import_module(f"jaxvars.tf.{space}")
    made = globals()[name] = _by_name(name, find(_PUBLIC[name]))
    return made


def _advice(name: str) -> str:
    found = [full for full, row in TABLE.items() if name in (row.op, full.split(".")[-1].title())]
    if found:
        return f"Its public name is tf.{min(found, key=len)}, whose arguments have other names."
    return did_you_mean(name, list(_PUBLIC)) or "Use the public function that does the same."


def _by_name(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes its arguments by name only."""

    @functools.wraps(function)
    def operation(**arguments: Any) -> Any:
        return function(**arguments)

    operation.__name__ = operation.__qualname__ = name
    return operation


__dir__ = lister(__name__, _PUBLIC)
