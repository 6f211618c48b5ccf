"""`tf.io`: files, records, and values as bytes."""

from __future__ import annotations

from jaxvars.tf._io_records import TFRecordOptions as TFRecordOptions
from jaxvars.tf._io_records import TFRecordWriter as TFRecordWriter
