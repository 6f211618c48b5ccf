"""`tf.data`: datasets, in the form that training loops use.

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000).batch(32)
    for images, labels in dataset:
        step(images, labels)

Rules this file keeps:
- elements are made in Python, on the host, one when it is requested.
"""

from __future__ import annotations

from jaxvars.tf.data import experimental as experimental
from jaxvars.tf.data.dataset import Dataset as Dataset
from jaxvars.tf.data.files import fixed_length_records as FixedLengthRecordDataset  # noqa: N812 - TensorFlow's name
from jaxvars.tf.data.files import text_lines as TextLineDataset  # noqa: N812 - TensorFlow's name
from jaxvars.tf.data.files import tf_records as TFRecordDataset  # noqa: N812 - TensorFlow's name
from jaxvars.tf.data.generators.counts import INFINITE as INFINITE_CARDINALITY
from jaxvars.tf.data.generators.counts import UNKNOWN as UNKNOWN_CARDINALITY
from jaxvars.tf.data.generators.options import Options as Options
from jaxvars.tf.data.generators.options import ThreadingOptions as ThreadingOptions
from jaxvars.tf.data.iterator import DatasetIterator as Iterator
from jaxvars.tf.data.iterator import IteratorSpec as IteratorSpec
from jaxvars.tf.data.iterator import NumpyIterator as NumpyIterator
from jaxvars.tf.listing import namespace
from jaxvars.tf.tensors.elements import DatasetSpec as DatasetSpec

AUTOTUNE = -1

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "DatasetSpec",
    "FixedLengthRecordDataset", "Iterator", "IteratorSpec", "NumpyIterator", "Options",
    "TFRecordDataset", "TextLineDataset", "ThreadingOptions", "experimental",
]  # fmt: skip


__getattr__, __dir__ = namespace(__name__)
