"""All linear operators, for `tf.linalg`."""

from __future__ import annotations

from jaxvars.tf.linalg.operators import algebra as _algebra  # noqa: F401  # pyright: ignore[reportUnusedImport] - it registers products
from jaxvars.tf.linalg.operators.blocks import LinearOperatorBlockDiag as LinearOperatorBlockDiag
from jaxvars.tf.linalg.operators.blocks import (
    LinearOperatorBlockLowerTriangular as LinearOperatorBlockLowerTriangular,
)
from jaxvars.tf.linalg.operators.blocks import LinearOperatorKronecker as LinearOperatorKronecker
from jaxvars.tf.linalg.operators.circulant import LinearOperatorCirculant as LinearOperatorCirculant
from jaxvars.tf.linalg.operators.circulant import (
    LinearOperatorCirculant2D as LinearOperatorCirculant2D,
)
from jaxvars.tf.linalg.operators.circulant import (
    LinearOperatorCirculant3D as LinearOperatorCirculant3D,
)
from jaxvars.tf.linalg.operators.dense import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from jaxvars.tf.linalg.operators.dense import LinearOperatorHouseholder as LinearOperatorHouseholder
from jaxvars.tf.linalg.operators.dense import (
    LinearOperatorLowerTriangular as LinearOperatorLowerTriangular,
)
from jaxvars.tf.linalg.operators.dense import LinearOperatorPermutation as LinearOperatorPermutation
from jaxvars.tf.linalg.operators.dense import LinearOperatorToeplitz as LinearOperatorToeplitz
from jaxvars.tf.linalg.operators.dense import LinearOperatorTridiag as LinearOperatorTridiag
from jaxvars.tf.linalg.operators.diagonal import LinearOperatorDiag as LinearOperatorDiag
from jaxvars.tf.linalg.operators.diagonal import LinearOperatorIdentity as LinearOperatorIdentity
from jaxvars.tf.linalg.operators.diagonal import (
    LinearOperatorScaledIdentity as LinearOperatorScaledIdentity,
)
from jaxvars.tf.linalg.operators.diagonal import LinearOperatorZeros as LinearOperatorZeros
from jaxvars.tf.linalg.operators.made import LinearOperatorAdjoint as LinearOperatorAdjoint
from jaxvars.tf.linalg.operators.made import LinearOperatorComposition as LinearOperatorComposition
from jaxvars.tf.linalg.operators.made import LinearOperatorInversion as LinearOperatorInversion
from jaxvars.tf.linalg.operators.made import (
    LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate,
)
from jaxvars.tf.linalg.operators.operator import LinearOperator as LinearOperator
