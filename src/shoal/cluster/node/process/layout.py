"""Where the process node keeps what it keeps, in the data dir."""

from __future__ import annotations

from pathlib import Path

from shoal.cluster import networks

NODE_NAME = "local"
POD_NETWORK = networks.POD_NETWORK
SERVICE_NETWORK = networks.SERVICE_NETWORK
NODE_ADDRESS = "10.88.0.1"
"""The node's own address in the network of its pods; the first one, so no pod gets it."""
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
        self.claims = self.data_dir / "volumes"
        """What claims get that have no volume of their own: a folder each, named after the volume."""

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

    def own_folders(self, uid: str, name: str) -> list[Path]:
        """All that a container wrote outside of its volumes, and its logs."""
        return [self.pod(uid) / "containers" / name, self.pod(uid) / "logs" / name]

    def scratch(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container writes outside of its volumes."""
        return self.container(uid, name, attempt) / "scratch"

    def termination_message(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container has to say about its end."""
        return self.container(uid, name, attempt) / "termination-log"

    def log(self, uid: str, name: str, attempt: int) -> Path:
        """What one run of a container wrote last; older pieces have numbers at their ends, the oldest the highest."""
        return self.pod(uid) / "logs" / name / f"{attempt}.log"
