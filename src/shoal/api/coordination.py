"""coordination.k8s.io: the leases that vouch for nodes, as far as those who judge a node's health read them.

Leases that elect leaders belong to the controller runtime (``shoal.kube.leases``), which knows no API group and has its
own reading of the kind. A lease is written as plain values, its times by ``shoal.api.meta.format_micro_time``.
"""

from __future__ import annotations

from shoal.api.meta import Object, Resource, Wire

NODE_LEASE_NAMESPACE = "kube-node-lease"
"""Where the leases of nodes are."""


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """When a lease was renewed last, as its holder's clock had it."""

    renew_time: str | None = None


class Lease(Object, frozen=True, kw_only=True):
    """A sign of life."""

    spec: LeaseSpec = LeaseSpec()


LEASES = Resource(type=Lease, group="coordination.k8s.io", version="v1", kind="Lease", plural="leases")
