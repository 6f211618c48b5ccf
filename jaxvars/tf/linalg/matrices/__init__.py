"""The functions of matrices, put into the table."""

from __future__ import annotations

from jaxvars.tf.linalg.matrices import diagonals as diagonals
from jaxvars.tf.linalg.matrices import factors as factors
from jaxvars.tf.linalg.matrices import norms as norms
from jaxvars.tf.linalg.matrices import solve as solve
from jaxvars.tf.linalg.matrices import spectral as spectral
