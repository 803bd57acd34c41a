"""A policy for the scheduler: pods go where the dataset is that they name, and others stay away from such nodes.

A package with this module makes it known by an entry point in its pyproject.toml; docs/scheduler-plugins.md shows how.
"""

from __future__ import annotations

import numpy as np

from shoal.scheduler.plugins import Arguments, Column, NodeTable, Task


def score(nodes: NodeTable, task: Task, arguments: Arguments) -> Column:
    """100 points: more than packing nodes full is worth, less than a place that is free at once."""
    label = arguments.get("label", "example.com/dataset")
    return np.where(nodes.label(label) == task.labels.get(label, ""), 100.0, 0.0)
