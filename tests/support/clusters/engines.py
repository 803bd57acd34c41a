"""The two clusters that what talks to Kubernetes is tested on: a real one, and Shoal's own as ``shoal up`` starts it.

``engine`` is both of them, one after the other, for the whole session; ``engine_with_faults`` belongs to one test,
which may kill what it likes. What is marked ``kube`` for the first is part of every run for the second.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

from shoal.cli.data_dir import DataDir, PartState
from shoal.cluster.keyring import Keyring, kubeconfig
from shoal.cluster.kubernetes import AdminApi
from shoal.kube.certificates import KeyPair
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

REAL = pytest.param("real", marks=pytest.mark.kube)
EMBEDDED = pytest.param("embedded")
on_the_real_one_alone = pytest.mark.parametrize("engine", [REAL], indirect=True)
"""For what the embedded server says that it leaves out."""


class Engine(Protocol):
    """A cluster with controllers, in the words of RealKubernetes."""

    @property
    def server(self) -> str: ...
    @property
    def kubeconfig(self) -> Path: ...
    @property
    def ca_file(self) -> Path: ...
    @property
    def admin_token(self) -> str: ...
    @property
    def admin(self) -> AdminApi: ...
    def certificate_for(self, user: str, groups: Sequence[str] = ()) -> KeyPair: ...
    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> str: ...


class EngineWithFaults(Engine, Protocol):
    """One whose API server can be made to fail."""

    def kill_api_server(self) -> None: ...
    def restart_api_server(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class ShoalUp:
    """A running ``shoal up``."""

    def __init__(self, shoal: Shoal) -> None:
        self._shoal = shoal
        self._place = DataDir(shoal.data_dir)
        self._killed = 0

    @property
    def server(self) -> str:
        return self._shoal.endpoints()["api"]

    @property
    def kubeconfig(self) -> Path:
        return self._shoal.kubeconfig

    @property
    def ca_file(self) -> Path:
        return self._keyring.authority_file

    @property
    def admin_token(self) -> str:
        return self._keyring.admin_token

    @property
    def admin(self) -> AdminApi:
        return self._shoal.admin

    def certificate_for(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        return self._keyring.client(user, groups, now=datetime.now(UTC))

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> str:
        token = self._keyring.user_tokens.token(user, groups)
        return kubeconfig(self.server, authority=self._keyring.authority, user=user, sign_in=token)

    def kill_api_server(self) -> None:
        """Ends the API server as a crash would; the supervisor starts it again."""
        self._killed = self._api.pid
        os.kill(self._killed, signal.SIGKILL)

    def restart_api_server(self) -> None:
        """Waits until the supervisor has started it again."""
        wait_until(
            lambda: self._api.pid != self._killed and self._api.state == "running", "the API server to be started again"
        )

    def pause(self) -> None:
        """Makes the API server hang: its connections stay open and nothing is answered."""
        os.kill(self._api.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._api.pid, signal.SIGCONT)

    @property
    def _keyring(self) -> Keyring:
        return Keyring(self._shoal.data_dir / "pki", now=datetime.now(UTC))

    @property
    def _api(self) -> PartState:
        return next(part for part in self._place.parts() if part.name == "api")


@contextmanager
def running_shoal(data_dir: Path, *options: str) -> Iterator[ShoalUp]:
    """Runs ``shoal up`` for the length of a block."""
    shoal = Shoal(data_dir)
    with shoal.foreground(*options) as (process, line):
        assert line.startswith("Shoal is ready"), f"shoal up ended ({process.wait()}): {line}"
        try:
            yield ShoalUp(shoal)
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShoalUp]:
    """The session's shared Shoal: its API server and controllers, without nodes."""
    with running_shoal(tmp_path_factory.mktemp("shoal") / "data", "--only=api,controllers") as shoal:
        yield shoal


@pytest.fixture(scope="session", params=[REAL, EMBEDDED])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each of the two shared clusters: use ``namespace`` and leave the rest as it was."""
    found: Engine = request.getfixturevalue("kube" if request.param == "real" else "embedded_cluster")
    return found


@pytest.fixture(params=[pytest.param("real", marks=[pytest.mark.kube, pytest.mark.slow]), EMBEDDED])
def engine_with_faults(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EngineWithFaults]:
    """Each of them for this test alone, without controllers."""
    if request.param == "real":
        yield request.getfixturevalue("kube_with_faults")
        return
    with running_shoal(tmp_path / "data", "--only=api") as shoal:
        yield shoal
