"""All linear operators, for `tf.linalg`."""

from __future__ import annotations

from jaxvars.tf import _linear_operator_algebra as _linear_operator_algebra
from jaxvars.tf._linear_operator import LinearOperator as LinearOperator
from jaxvars.tf._linear_operator_blocks import (
    LinearOperatorBlockDiag as LinearOperatorBlockDiag,
)
from jaxvars.tf._linear_operator_blocks import (
    LinearOperatorBlockLowerTriangular as LinearOperatorBlockLowerTriangular,
)
from jaxvars.tf._linear_operator_blocks import LinearOperatorKronecker as LinearOperatorKronecker
from jaxvars.tf._linear_operator_circulant import (
    LinearOperatorCirculant as LinearOperatorCirculant,
)
from jaxvars.tf._linear_operator_circulant import (
    LinearOperatorCirculant2D as LinearOperatorCirculant2D,
)
from jaxvars.tf._linear_operator_circulant import (
    LinearOperatorCirculant3D as LinearOperatorCirculant3D,
)
from jaxvars.tf._linear_operator_dense import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from jaxvars.tf._linear_operator_dense import (
    LinearOperatorLowerTriangular as LinearOperatorLowerTriangular,
)
from jaxvars.tf._linear_operator_dense import LinearOperatorToeplitz as LinearOperatorToeplitz
from jaxvars.tf._linear_operator_dense import LinearOperatorTridiag as LinearOperatorTridiag
from jaxvars.tf._linear_operator_diagonal import LinearOperatorDiag as LinearOperatorDiag
from jaxvars.tf._linear_operator_identity import LinearOperatorIdentity as LinearOperatorIdentity
from jaxvars.tf._linear_operator_identity import (
    LinearOperatorScaledIdentity as LinearOperatorScaledIdentity,
)
from jaxvars.tf._linear_operator_identity import LinearOperatorZeros as LinearOperatorZeros
from jaxvars.tf._linear_operator_made import LinearOperatorAdjoint as LinearOperatorAdjoint
from jaxvars.tf._linear_operator_made import (
    LinearOperatorComposition as LinearOperatorComposition,
)
from jaxvars.tf._linear_operator_made import LinearOperatorInversion as LinearOperatorInversion
from jaxvars.tf._linear_operator_orthogonal import (
    LinearOperatorHouseholder as LinearOperatorHouseholder,
)
from jaxvars.tf._linear_operator_orthogonal import (
    LinearOperatorPermutation as LinearOperatorPermutation,
)
from jaxvars.tf._linear_operator_update import (
    LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate,
)
