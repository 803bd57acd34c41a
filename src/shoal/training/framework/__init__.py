"""The framework that turns a TrainJob and its runtime into objects: a value, and plugins that each say a part of it.

``Info`` is the value: the runtime's JobSet with the TrainJob's patches, read as sets of pods. ``Framework`` hands it
from plugin to plugin in a fixed order and collects what they want to be there. Nothing here talks to a server.
"""

from shoal.training.framework.gang import Gang, gang_of
from shoal.training.framework.info import Container, Info, PodSet, Seen, TrainerOverrides
from shoal.training.framework.making import make_info
from shoal.training.framework.pipeline import Framework
from shoal.training.framework.plugin import Outcome, Plugin, Unbuildable, Wanted, wanted
from shoal.training.framework.registry import ENTRY_POINTS, third_party

__all__ = [
    "ENTRY_POINTS",
    "Container",
    "Framework",
    "Gang",
    "Info",
    "Outcome",
    "Plugin",
    "PodSet",
    "Seen",
    "TrainerOverrides",
    "Unbuildable",
    "Wanted",
    "gang_of",
    "make_info",
    "third_party",
    "wanted",
]
