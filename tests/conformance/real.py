"""The real server that answers are recorded from: an API server with all its usual admission, and no controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.cluster.kubernetes import Binaries, Part, RealKubernetes

# The ServiceAccount admission plugin is on only where a controller manager is; this one makes the accounts that the
# launcher waits for, and then ends.
OPTIONS = {
    "controller_manager": True,
    "durable": False,
    "extra_flags": {Part.CONTROLLER_MANAGER: ("--controllers=serviceaccount-controller",)},
}


@contextmanager
def real_server(binaries: Binaries, data_dir: Path) -> Iterator[RealKubernetes]:
    """Runs one for the length of a block."""
    cluster = RealKubernetes(binaries, data_dir, **OPTIONS)  # type: ignore[arg-type]
    cluster.start()
    try:
        without_controllers(cluster)
        yield cluster
    finally:
        cluster.stop(grace=0)


def without_controllers(cluster: RealKubernetes) -> RealKubernetes:
    cluster.processes()[Part.CONTROLLER_MANAGER].kill()
    return cluster
