"""Elements of datasets, as generators."""
