"""Scheduler backends: one module each, chosen by a PodGang's label ``grove.io/scheduler-backend``.

Third parties add theirs as entry points ``shoal.gangs.backends``; nothing else has to know of them.
"""

from shoal.gangs.backends.backend import Backend, Marks, NotServed, Untranslatable, Wanted
from shoal.gangs.backends.registry import Backends

__all__ = ["Backend", "Backends", "Marks", "NotServed", "Untranslatable", "Wanted"]
