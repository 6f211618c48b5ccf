"""`tf.data.Dataset`: elements one after another, and the steps that change them.

base          what a dataset is; how it is iterated over
sources       how one is made
functions     map, filter, interleave, reduce, ...
groups        batch, window, group_by_window, ...
order         shuffle, repeat, take, ...
combinations  zip, concatenate, sample_from_datasets, ...
stored        cache, save, load, snapshot
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
