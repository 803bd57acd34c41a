"""What workers work with: the API server, the runtime, and those who prepare what containers find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from shoal.api.core.pod_details import POD_DETAILS, PodDetails
from shoal.cluster.node.addresses import Addresses
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.contents import Contents
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.machine.gpus import Gpus
from shoal.cluster.node.process.pods.admission import Refusal
from shoal.cluster.node.process.pods.reach import Dial
from shoal.kube import About, Client, Recorder

DISCONNECTED = "Disconnected"
"""The reason of a fault of the runtime where there is no connection to it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """All of them, for as long as one connection to the runtime lasts."""

    client: Client
    events: Recorder
    runtime: Runtime
    contents: Contents
    gpus: Gpus
    layout: Layout
    addresses: Addresses
    node_address: str
    """The node's own address, which pods in its network share."""
    has_pod_network: bool
    """Whether pods have addresses of their own."""
    dial: Dial
    refusal: Callable[[PodDetails], Refusal | None]
    """Why a pod cannot be taken in, beside those that were."""
    now: Callable[[], datetime]

    def tell(self, pod: PodDetails, reason: str, message: str) -> None:
        """An event of something as it should be."""
        self.events.normal(About.of(POD_DETAILS, pod), reason, message)

    def warn(self, pod: PodDetails, reason: str, message: str) -> None:
        """An event of something that a person may have to look at."""
        self.events.warning(About.of(POD_DETAILS, pod), reason, message)


def called(pod: PodDetails) -> str:
    """How a pod is called in messages about its containers."""
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
