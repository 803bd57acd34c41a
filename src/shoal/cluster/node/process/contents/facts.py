"""What is known of the node before its first pod: given by whoever starts the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from shoal.api.meta import QuantityString
from shoal.cluster.node.process.layout import CLUSTER_DOMAIN, NODE_ADDRESS, NODE_NAME


class ApiAddress(NamedTuple):
    """Where the API server is reached without the network of pods."""

    host: str
    port: int


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """The node, as far as containers can tell."""

    name: str = NODE_NAME
    address: str = NODE_ADDRESS
    """What pods are told as ``status.hostIP``."""
    network: Literal["private", "host"] = "private"
    """Whether pods have a network of their own with the cluster's names in it, or the machine's."""
    has_namespaces: bool = True
    """Whether containers see files where their specs put them; otherwise they see the machine as it is."""
    has_all_ids: bool = False
    """Whether users and groups inside are those of the machine, because root started it."""
    has_gpus: bool = False
    """Whether the machine has GPUs, which must not be seen by those who asked for none."""
    allocatable: Mapping[str, QuantityString] = field(default_factory=dict)
    """What pods may use: the limit of a container that has none."""
    nameserver: str = NODE_ADDRESS
    cluster_domain: str = CLUSTER_DOMAIN
    api_server: ApiAddress | None = None
    """In the machine's network, where no service address leads anywhere: what the service ``kubernetes`` stands for."""
