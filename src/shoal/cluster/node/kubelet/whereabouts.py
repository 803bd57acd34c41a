"""Where an agent answers, as the status of its nodes tells API servers that know no sockets."""

from __future__ import annotations

from typing import Any

from shoal.api.core import LOOPBACK_ADDRESS

LOOPBACK = "127.0.0.1"
USUAL_PORT = 10250


def agent_addresses(port: int | None) -> list[dict[str, str]]:
    """What is added to a node's addresses where its agent answers on a port of this machine."""
    return [{"type": LOOPBACK_ADDRESS, "address": LOOPBACK}] if port is not None else []


def daemon_endpoints(port: int | None) -> dict[str, Any]:
    """The port by which a node's agent is found; one that has none says what kubelets say."""
    return {"kubeletEndpoint": {"Port": port if port is not None else USUAL_PORT}}
