"""Policies of third parties, in Python: which nodes will do, which are better, who comes first, who must not start.

A plugin is a module, an object or a class with some of the functions of ``surface``. A package makes it known by an
entry point ``shoal.scheduler.plugins``, and the configuration file says whether it takes part, where in the order, and
with which arguments. ``loading`` finds them, ``asking`` asks them: whatever a plugin does wrong, the cycle goes on.
"""

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.plugins.asking import NO_PLUGINS, Plugins, Refusal
from shoal.scheduler.plugins.loading import ENTRY_POINTS, installed_names, load_plugins
from shoal.scheduler.plugins.surface import FUNCTIONS, Arguments, Column, NodeTable, Plugin

__all__ = [
    "ENTRY_POINTS",
    "FUNCTIONS",
    "NO_PLUGINS",
    "Arguments",
    "Column",
    "Job",
    "Mask",
    "NodeTable",
    "Plugin",
    "Plugins",
    "Refusal",
    "Task",
    "installed_names",
    "load_plugins",
]
