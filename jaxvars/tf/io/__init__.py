"""`tf.io`: files, records, and values as bytes.

values    files as strings; tensors, numbers and rows of CSV as bytes
records   TFRecord files
tensors   tensors as messages, and as bytes
examples  `tf.train.Example`s as tensors
sparse    sparse tensors as bytes
gfile     files and folders
"""

from __future__ import annotations

from jaxvars.tf import image as _image  # noqa: F401  # pyright: ignore[reportUnusedImport] - its operations are here, too
from jaxvars.tf.io import gfile as gfile
from jaxvars.tf.io.examples import FixedLenFeature as FixedLenFeature
from jaxvars.tf.io.examples import FixedLenSequenceFeature as FixedLenSequenceFeature
from jaxvars.tf.io.examples import RaggedFeature as RaggedFeature
from jaxvars.tf.io.examples import SparseFeature as SparseFeature
from jaxvars.tf.io.examples import VarLenFeature as VarLenFeature
from jaxvars.tf.io.examples import parse_example as parse_example
from jaxvars.tf.io.examples import parse_single_example as parse_single_example
from jaxvars.tf.io.records import TFRecordOptions as TFRecordOptions
from jaxvars.tf.io.records import TFRecordWriter as TFRecordWriter
from jaxvars.tf.io.sparse import deserialize_many_sparse as deserialize_many_sparse
from jaxvars.tf.io.sparse import serialize_many_sparse as serialize_many_sparse
from jaxvars.tf.io.sparse import serialize_sparse as serialize_sparse
from jaxvars.tf.io.values import write_file as write_file
from jaxvars.tf.listing import namespace
from jaxvars.tf.registry.rows import operations

__getattr__, __dir__ = namespace(__name__, find=operations(__name__))
