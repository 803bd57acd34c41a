"""This machine as a node, started by ``shoal up`` as root and as an ordinary user, with the real kubectl in front."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.local_node.scenes import Scene, a_scene
from tests.support.clusters.real import kubectl_for
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.kubectl import Kubectl
from tests.support.programs.ordinary_user import USER, as_ordinary_user, is_root

SHORTFALLS = r"jsonpath={.metadata.annotations.shoal\.dev/shortfalls}"


@dataclass(frozen=True)
class LocalNode:
    """A running ``shoal up`` with its node ``local``, and who started it: ``root`` or ``user``."""

    who: str
    shoal: Shoal
    kubectl: Kubectl

    @property
    def folder(self) -> Path:
        """A folder that belongs to whoever started it; the data dir lies in it."""
        return self.shoal.data_dir.parent

    @property
    def is_root(self) -> bool:
        return self.who == "root"

    def command(self, *command: str) -> list[str]:
        """The command line that runs another as whoever started the node."""
        return list(command) if self.is_root else as_ordinary_user(*command)


@pytest.fixture(scope="session", params=["root", "user"])
def local_node(request: pytest.FixtureRequest) -> Iterator[LocalNode]:
    """A node for all tests of the session; each has namespaces of its own in it."""
    with a_local_node(request.param) as node:
        yield node


@pytest.fixture
def scene(local_node: LocalNode, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A namespace of the test's own on the session's node."""
    with a_scene(local_node, request.node.originalname) as scene:
        yield scene


@contextmanager
def a_local_node(who: str, *options: str, parent: Path = Path("/tmp")) -> Iterator[LocalNode]:
    """A node of one's own, for tests that break it or start it with options; skips where this machine allows none.

    Its data dir is in a new folder of ``parent``; that of the machine's /tmp is one that no pod sees.
    """
    if who == "root" and not is_root():
        pytest.skip("only root can be root: run the tests as root to see the node as root has it")
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"shoal-{who}-"))
    if who == "user" and is_root():
        os.chown(folder, USER, USER)
    as_owner = as_ordinary_user if who == "user" else lambda *command: list(command)
    shoal = Shoal(folder / "data", *options, has_local_node=True, as_owner=as_owner)
    node = LocalNode(who, shoal, kubectl_for(shoal.kubeconfig, folder / "kubectl"))
    try:
        done = _run(node.command, shoal.up("--detach"))
        assert done.returncode == 0, f"shoal up as {who} failed: {done.stderr}"
        _skip_where_the_machine_falls_short(node)
        yield node
    finally:
        _run(node.command, [*shoal.up()[:1], "down", f"--data-dir={shoal.data_dir}"])
        shutil.rmtree(folder)


def _skip_where_the_machine_falls_short(node: LocalNode) -> None:
    told = node.kubectl("get", "node", "local", "-o", SHORTFALLS).splitlines()
    # Limits are the one thing that ordinary users go without as a rule: tests of them say so themselves.
    missing = "; ".join(line for line in told if "control groups" not in line)
    if missing and os.environ.get("SHOAL_REQUIRE_KUBE", "") in ("", "0"):
        pytest.skip(f"this machine does not allow all that pods need: {missing}")
    assert not missing, f"this machine does not allow all that pods need: {missing}"


def _run(as_who: Callable[..., list[str]], command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(as_who(*command), capture_output=True, text=True, check=False, timeout=60)
