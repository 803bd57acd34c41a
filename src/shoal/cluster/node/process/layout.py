"""Where the process node keeps what it keeps, in the data dir."""

from __future__ import annotations

from pathlib import Path

NODE_NAME = "local"
POD_NETWORK = "10.88.0.0/16"
NODE_ADDRESS = "10.88.0.1"
"""The node's own address in the network of its pods; the first one, so no pod gets it."""
SERVICE_NETWORK = "10.96.0.0/12"
"""Holds the addresses of services, whichever server gives them out."""
CLUSTER_DOMAIN = "cluster.local"


class Layout:
    """The files and folders of one node."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.absolute()
        self.folder = self.data_dir / "node"
        self.images = self.data_dir / "images.yaml"
        self.agent_socket = self.data_dir / "agents" / "local.sock"
        self.runtime_socket = self.folder / "runtime.sock"
        self.root = self.folder / "root"
        """An empty folder, on which roots of containers are built, each where only its container sees it."""
        self.pods = self.folder / "pods"

    def pod(self, uid: str) -> Path:
        """All that is kept of a pod."""
        return self.pods / uid

    def volume(self, uid: str, name: str) -> Path:
        """What a volume holds."""
        return self.pod(uid) / "volumes" / name

    def etc(self, uid: str, name: str) -> Path:
        """A file that all containers of a pod find in /etc."""
        return self.pod(uid) / "etc" / name

    def container(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container keeps to itself."""
        return self.pod(uid) / "containers" / name / str(attempt)

    def scratch(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container writes outside of its volumes."""
        return self.container(uid, name, attempt) / "scratch"

    def termination_message(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container has to say about its end."""
        return self.container(uid, name, attempt) / "termination-log"

    def log(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container wrote last; older pieces have numbers at their ends, the oldest the highest."""
        return self.pod(uid) / "logs" / name / f"{attempt}.log"
