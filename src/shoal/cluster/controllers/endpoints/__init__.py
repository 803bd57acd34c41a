"""Endpoints, the older form of a service's backends: one object for each service that selects pods.

What it says is worked out by pure functions; the controller writes it, and removes it with its service.
"""

from __future__ import annotations

from shoal.api.core import ENDPOINTS, PODS, SERVICES
from shoal.cluster.controllers.backends import changes_endpoints
from shoal.cluster.controllers.endpoints.controller import EndpointsController, was_left_or_removed
from shoal.kube import Controller, Manager, Watch
from shoal.kube.changes import itself

__all__ = ["add_endpoints"]


def add_endpoints(manager: Manager, *, batch_period: float = 0.0) -> None:
    """Adds what keeps Endpoints; the changes of a service's pods are gathered for ``batch_period`` seconds."""
    kept = EndpointsController(manager, batch_period=batch_period)
    manager.add(
        Controller(
            "endpoints",
            SERVICES,
            kept.reconcile,
            watches=[
                Watch(resource=PODS, keys=kept.members.selecting, when=changes_endpoints),
                Watch(resource=ENDPOINTS, keys=itself, when=was_left_or_removed),
            ],
            yields=True,
        )
    )
