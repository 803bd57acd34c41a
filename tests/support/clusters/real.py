"""A real Kubernetes for tests: one for the whole session, private ones for tests that break it.

``kube`` is shared: use ``namespace`` and leave the rest as it was. ``kube_with_faults`` belongs to one test, which may
kill what it likes. ``start_kube`` starts further ones with the options it is given.

Where the binaries are missing, tests marked ``kube`` (and all that use these fixtures are) do not run, and the summary
says so in one line. With SHOAL_REQUIRE_KUBE=1 that is an error instead.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.api.definitions import ALL
from shoal.cluster.kubernetes import AdminApi, Binaries, RealKubernetes, Refused
from tests.support.programs import kube_binaries
from tests.support.programs.kubectl import Kubectl

NEEDED = tuple(tool for tool in kube_binaries.TOOLS if tool.name in ("kubernetes", "etcd"))
NOT_BUILT = "real Kubernetes is not built: run make kube-binaries"
LEFT_OUT = pytest.StashKey[int]()

StartKube = Callable[..., RealKubernetes]


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    return Binaries(
        etcd=_built("etcd"),
        kube_apiserver=_built("kube-apiserver"),
        kube_controller_manager=_built("kube-controller-manager"),
        kube_scheduler=_built("kube-scheduler"),
    )


@pytest.fixture(scope="session")
def kube(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKubernetes]:
    """The session's shared cluster, with a controller manager and our kinds; started when a test first asks for it."""
    cluster = RealKubernetes(
        binaries,
        tmp_path_factory.mktemp("kube"),
        controller_manager=True,
        durable=False,
        definitions=[definition.manifest() for definition in ALL],
    )
    cluster.start()
    yield cluster
    _throw_away(cluster)


@pytest.fixture
def namespace(kube: RealKubernetes, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own in the shared cluster."""
    with namespace_for(request.node.name, kube.admin) as name:
        yield name


@contextmanager
def namespace_for(test: str, admin: AdminApi) -> Iterator[str]:
    """A namespace of a test's own, in which pods can be made; its deletion is not waited for."""
    readable = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_"))[:45].strip("-")
    name = f"{readable}-{secrets.token_hex(4)}"
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    # The controller manager would make it a moment later; a pod made before that is refused.
    try:
        account = {"metadata": {"name": "default"}}
        admin.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    except Refused as error:
        if error.status != 409:
            raise
    yield name
    admin.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def start_kube(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartKube]:
    """Starts clusters of the test's own: ``start_kube(controller_manager=True, extra_flags={…})``."""
    started: list[RealKubernetes] = []

    def start(**options: object) -> RealKubernetes:
        data_dir = options.pop("data_dir", None) or tmp_path_factory.mktemp("kube")
        cluster = RealKubernetes(binaries, data_dir, **options)  # type: ignore[arg-type]
        cluster.start()
        started.append(cluster)
        return cluster

    yield start
    for cluster in started:
        _throw_away(cluster)


@pytest.fixture
def kube_with_faults(start_kube: StartKube) -> RealKubernetes:
    """A cluster of this test's own, without a controller manager, whose parts it may kill, pause and restart."""
    return start_kube()


@pytest.fixture(scope="session")
def kubectl(kube: RealKubernetes, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The real kubectl, signed in to the shared cluster as its admin."""
    return kubectl_for(kube.kubeconfig, tmp_path_factory.mktemp("kubectl"))


def kubectl_for(kubeconfig: Path, cache: Path) -> Kubectl:
    return Kubectl(_built("kubectl"), kubeconfig, cache)


def pytest_itemcollected(item: pytest.Item) -> None:
    # All that start a real cluster start it from these, directly or by another fixture.
    if "binaries" in getattr(item, "fixturenames", ()):
        item.add_marker("kube")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the kube tests out where they cannot run; after -m and -k, so that only what was asked for counts."""
    affected = [item for item in items if item.get_closest_marker("kube")]
    if not affected or not kube_binaries.missing(NEEDED):
        return
    if os.environ.get("SHOAL_REQUIRE_KUBE", "") not in ("", "0"):
        raise pytest.UsageError(f"kube: {len(affected)} tests cannot run: {NOT_BUILT}")
    items[:] = [item for item in items if not item.get_closest_marker("kube")]
    config.hook.pytest_deselected(items=affected)
    config.stash[LEFT_OUT] = len(affected)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Nothing left to run is no failure where the line below says why."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and LEFT_OUT in session.config.stash:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"kube: {count} tests skipped: {NOT_BUILT}", yellow=True)


def _built(command: str) -> Path:
    path = kube_binaries.binary(command)
    assert path is not None, NOT_BUILT
    return path


def _throw_away(cluster: RealKubernetes) -> None:
    """Kills a cluster and leaves its logs alone: etcd's data are big, and pytest keeps folders of three sessions."""
    cluster.stop(grace=0)
    shutil.rmtree(cluster.data_dir / "etcd", ignore_errors=True)
