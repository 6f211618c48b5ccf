"""The reliability suite: a fault is injected at each step, and an invariant is checked after it.

    pytest tests/reliability                    the short form, which CI runs
    pytest tests/reliability -m "slow or not slow"     all of it

One file for each kind of fault. Faults come at places or from seeds that the file names, never by
chance alone, so that a failure can be repeated.
"""
