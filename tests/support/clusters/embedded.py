"""The embedded API server for tests: the real command in a process of its own, one for the whole session.

It has what RealKubernetes has, so that what is written for one works with the other.
"""

from __future__ import annotations

import base64
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from shoal.cluster.kubernetes import AdminApi
from tests.support.programs.command import SHOAL, environment

READY = "Shoal is ready"
_STOPS_WITHIN = 10
# A client that left a moment ago may not have closed TLS yet; uvloop says so when it ends, and waits for ever where the
# warning is an error.
_WARNINGS = "error,ignore:unclosed resource:ResourceWarning"


@dataclass(frozen=True)
class Embedded:
    """A server that runs."""

    server: str
    """The base URL."""
    kubeconfig: Path
    ca_file: Path
    admin_token: str

    @property
    def admin(self) -> AdminApi:
        """Plain requests as the admin."""
        return AdminApi(self.server, token=self.admin_token, authority=self.ca_file.read_text())


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The session's shared server: use a namespace of your own and leave the rest as it was."""
    with running_embedded(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@contextmanager
def running_embedded(data_dir: Path) -> Iterator[Embedded]:
    """Runs one on this data dir for the length of a block, and ends it as a person would."""
    command = [*SHOAL, "apiserver", "--data-dir", str(data_dir), "--api-port", "0", "--no-durable"]
    log = data_dir.with_name(f"{data_dir.name}.log")
    with log.open("wb") as errors:
        settings = environment(PYTHONWARNINGS=_WARNINGS)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=settings)
    assert process.stdout is not None
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith(READY):
                break
        else:
            raise AssertionError(f"shoal apiserver ended ({process.wait()}): {''.join(said)}{log.read_text()}")
        yield _described(data_dir)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()


def _described(data_dir: Path) -> Embedded:
    """What its kubeconfig says of it."""
    kubeconfig = data_dir / "kubeconfig"
    content = yaml.safe_load(kubeconfig.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    ca_file = data_dir / "authority-for-tests.crt"
    ca_file.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return Embedded(server=cluster["server"], kubeconfig=kubeconfig, ca_file=ca_file, admin_token=user["token"])
