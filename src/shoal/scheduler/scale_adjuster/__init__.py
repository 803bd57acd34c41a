"""Lets cluster autoscalers see pods that wait for a part of a GPU: they understand whole ones alone.

``add_scale_adjuster`` adds the controller to a manager. ``scaling`` says which pods are needed to ask for GPUs in their
stead, ``objects`` how these look; both are pure.
"""

from shoal.scheduler.scale_adjuster.controller import add_scale_adjuster
from shoal.scheduler.scale_adjuster.settings import ScaleAdjusterSettings

__all__ = ["ScaleAdjusterSettings", "add_scale_adjuster"]
