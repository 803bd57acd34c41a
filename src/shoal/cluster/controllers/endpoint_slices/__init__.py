"""EndpointSlices: those of services that select pods, and those that mirror Endpoints which somebody wrote by hand.

What slices there should be is worked out by pure functions; two controllers, one for each origin, write them.
"""

from __future__ import annotations

from shoal.api.core import ENDPOINTS, NODES, PODS, SERVICES
from shoal.api.discovery_k8s_io import ENDPOINT_SLICES
from shoal.cluster.controllers.backends import changes_endpoints
from shoal.cluster.controllers.endpoint_slices.controller import EndpointSliceController, zone_changed
from shoal.cluster.controllers.endpoint_slices.mirror_controller import MirrorController, has_gained_or_lost_selector
from shoal.cluster.controllers.endpoint_slices.writing import keys_of_slice
from shoal.kube import Controller, Manager, Watch
from shoal.kube.changes import itself

__all__ = ["add_endpoint_slices"]


def add_endpoint_slices(
    manager: Manager,
    *,
    max_endpoints_per_slice: int = 100,
    max_endpoints_per_mirrored_subset: int = 1000,
    batch_period: float = 0.0,
) -> None:
    """Adds what keeps EndpointSlices; the changes of a service's pods are gathered for ``batch_period`` seconds."""
    kept = EndpointSliceController(manager, limit=max_endpoints_per_slice, batch_period=batch_period)
    manager.add(
        Controller(
            "endpoint-slices",
            SERVICES,
            kept.reconcile,
            watches=[
                Watch(resource=PODS, keys=kept.members.selecting, when=changes_endpoints),
                Watch(resource=NODES, keys=kept.services_by_node, when=zone_changed),
                Watch(resource=ENDPOINT_SLICES, keys=keys_of_slice(kept.MANAGER), when=kept.slices.is_foreign),
            ],
            yields=True,
        )
    )
    mirrored = MirrorController(manager, limit=max_endpoints_per_mirrored_subset)
    manager.add(
        Controller(
            "endpoint-slice-mirroring",
            ENDPOINTS,
            mirrored.reconcile,
            watches=[
                Watch(resource=SERVICES, keys=itself, when=has_gained_or_lost_selector),
                Watch(resource=ENDPOINT_SLICES, keys=keys_of_slice(mirrored.MANAGER), when=mirrored.slices.is_foreign),
            ],
            yields=True,
        )
    )
