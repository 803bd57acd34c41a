"""Sizes workloads by what they use: the reconcile of HorizontalPodAutoscalers.

``replicas`` says what size a metric asks for, ``limits`` how quickly the size may change, ``metrics`` reads metrics.
"""

from __future__ import annotations

from datetime import timedelta

from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.cluster.controllers.autoscaling.controller import Autoscaling, Settings
from shoal.kube import Controller, Manager
from shoal.kube.changes import field_changed


def add_autoscaling(
    manager: Manager,
    *,
    sync_period: float = 15.0,
    tolerance: float = 0.1,
    downscale_stabilization: timedelta = timedelta(minutes=5),
    cpu_initialization_period: timedelta = timedelta(minutes=5),
    initial_readiness_delay: timedelta = timedelta(seconds=30),
) -> None:
    """Adds the controller; metrics have no watch, so that each autoscaler looks at them once in ``sync_period``."""
    settings = Settings(
        sync_period=sync_period,
        tolerance=tolerance,
        downscale_stabilization=downscale_stabilization,
        cpu_initialization_period=cpu_initialization_period,
        initial_readiness_delay=initial_readiness_delay,
    )
    reconcile = Autoscaling(manager, settings).reconcile
    wanted = field_changed(lambda autoscaler: (autoscaler.spec, autoscaler.metadata.uid))
    manager.add(Controller("horizontal-pod-autoscaling", HORIZONTAL_POD_AUTOSCALERS, reconcile, when=wanted))


__all__ = ["add_autoscaling"]
