"""Every row of ``table/``: a pod, and what kubectl alone shows of it, on a node of root's and on an ordinary user's.

All pods are made at once, as on a busy node, and the rows are played beside each other; a test tells how one ended.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.local_node.conftest import LocalNode
from tests.e2e.local_node.rows import TABLE, Row, all_rows, play
from tests.support.programs import kube_binaries

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(600)]

ROWS = all_rows()
AT_ONCE = 8
"""Rows that are played at the same time: most of their time they wait."""


@pytest.fixture(scope="module")
def table(local_node: LocalNode, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """The rows that were asked for, under way."""
    asked = {item.callspec.params["row"].claim for item in request.session.items if _is_ours(item)}  # type: ignore[attr-defined]
    rows = [row for row in ROWS if row.claim in asked and (local_node.is_root or not row.root_only)]
    shutil.copyfile(TABLE.with_name("images.yaml"), local_node.shoal.data_dir / "images.yaml")
    _make_images(local_node.folder)
    environment = _environment(local_node)
    kubectl = local_node.kubectl
    kubectl.apply(*(one for row in rows for one in row.manifests()))
    kubectl.apply(*(pod for row in rows for pod in row.pods()))
    folder = local_node.folder / "rows"
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            row.claim: pool.submit(play, row, kubectl.kubeconfig, folder / row.namespace, environment) for row in rows
        }
        pool.shutdown(cancel_futures=True)
    # The node is used by other tests after this one, which count what is on it.
    for row in rows:
        kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", namespace=row.namespace)
    kubectl("delete", "namespaces", "--wait=false", *(row.namespace for row in rows))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.claim)
def test_row(row: Row, local_node: LocalNode, table: dict[str, Future[None]]) -> None:
    if row.root_only and not local_node.is_root:
        pytest.skip(f"an ordinary user does not get this: {row.root_only}")
    problem = table[row.claim].exception()
    if isinstance(problem, AssertionError):
        pytest.fail(str(problem), pytrace=False)
    if problem is not None:
        raise problem


def _make_images(folder: Path) -> None:
    """What images.yaml names: an environment with a program of its own, and a rootfs with next to nothing in it."""
    rootfs, environment = folder / "rootfs", folder / "environment"
    for program in ("sh", "cat", "env", "id", "ls", "sleep"):
        place = shutil.which(program)
        assert place is not None
        needed = subprocess.run(["ldd", place], capture_output=True, text=True, check=True).stdout
        for file in [place, *re.findall(r"/\S+", needed)]:
            target = rootfs / ("bin" if file == place else file[1:])
            (target if file == place else target.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    (rootfs / "about").write_text("a rootfs of its own\n")
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "greet").write_text("#!/bin/sh\necho hello from $PWD\n")
    (environment / "bin" / "greet").chmod(0o755)
    owner = folder.stat()
    for path in (rootfs, *rootfs.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def _is_ours(item: pytest.Item) -> bool:
    return getattr(item, "originalname", "") == "test_row"


def _environment(local_node: LocalNode) -> dict[str, str]:
    """What lines of the table find beside what any shell has: kubectl, the data dir, and a server that speaks gRPC."""
    kubectl = local_node.kubectl
    return {
        **os.environ,
        "PATH": f"{kubectl.binary.parent}:{os.environ['PATH']}",
        "KUBECACHEDIR": str(kubectl.cache),
        "DATA_DIR": str(local_node.shoal.data_dir),
        "ETCD": str(kube_binaries.binary("etcd")),
    }
