"""The ports on which agents answer a real kube-apiserver, which finds kubelets by the status of their nodes."""

from __future__ import annotations

import socket
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shoal.cli.listeners import Listener
from shoal.cluster.keyring import Keyring
from shoal.cluster.node.kubelet import SecurePort, secure


@dataclass(frozen=True, kw_only=True)
class EgressPlace:
    """Where a real kube-apiserver connects to pods, Services and agents."""

    socket: socket.socket
    """A Unix socket that is listened on already."""
    agents: Collection[int]
    """The ports on which agents answer it."""


def agent_port(data_dir: Path, listener: Listener | None) -> SecurePort | None:
    """An agent's port, guarded by the keys of the cluster in a data dir; None where agents answer on sockets alone."""
    if listener is None:
        return None
    moment = datetime.now(UTC)
    return secure(listener.socket, Keyring(data_dir / "pki", now=moment), now=moment)
