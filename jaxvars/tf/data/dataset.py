"""`tf.data.Dataset`: elements one after another, and the steps that change them.

_data_base       what a dataset is; how it is iterated over
_data_made       how one is made
_data_functions  map, filter, interleave, reduce, ...
_data_groups     batch, window, group_by_window, ...
_data_order      shuffle, repeat, take, ...
_data_several    zip, concatenate, sample_from_datasets, ...
_data_stored     cache, save, load, snapshot
"""

from __future__ import annotations

from typing import final

from jaxvars.tf.data.base import loops_over
from jaxvars.tf.data.combinations import Several
from jaxvars.tf.data.functions import Functions
from jaxvars.tf.data.generators.cursor import WINDOWS
from jaxvars.tf.data.groups import Groups
from jaxvars.tf.data.order import Order
from jaxvars.tf.data.sources import Made
from jaxvars.tf.data.stored import Kept


@final
class Dataset(Made, Functions, Groups, Order, Several, Kept):
    """Elements one after another: made by `from_tensor_slices` and others, changed by steps.

    An element is a tensor, or a tuple or dict of them.

    >>> dataset = Dataset.range(5).map(lambda x: x * x).batch(2)
    >>> [batch.tolist() for batch in dataset.as_numpy_iterator()]
    [[0, 1], [4, 9], [16]]

    Differs from TensorFlow: functions run for each element, not as a graph, unless they are a
    `tf.function`; `num_parallel_calls`, `prefetch` and options have no effect. A loop over it
    inside a `tf.function` needs fixed shapes, as of `batch(n, drop_remainder=True)`.
    """


loops_over(Dataset)
WINDOWS.append(Dataset.range(0)._fixed)
