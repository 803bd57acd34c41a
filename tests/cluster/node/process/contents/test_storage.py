from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.contents.storage import StorageUsage, disk_usage, excess, storage_limits
from tests.cluster.node.process.builders import a_local_pod

MIB = 1 << 20


def a_pod(*, volumes: dict[str, Any] | None = None, limits: dict[str, str] | None = None) -> PodDetails:
    containers = [
        {"name": name, "image": "busybox", "resources": {"limits": {"ephemeral-storage": limit}}}
        for name, limit in (limits or {}).items()
    ]
    named = [{"name": name, "emptyDir": source} for name, source in (volumes or {}).items()]
    return a_local_pod(*containers, "free", volumes=named)


@pytest.mark.parametrize(
    ("pod", "usage", "expected"),
    [
        pytest.param(a_pod(), StorageUsage(volumes={}, containers={"free": MIB}), "", id="no limits"),
        pytest.param(
            a_pod(volumes={"a": {"sizeLimit": "1Mi"}, "b": {}}),
            StorageUsage(volumes={"a": MIB, "b": 9 * MIB}, containers={}),
            "",
            id="just as much as it may",
        ),
        pytest.param(
            a_pod(volumes={"a": {"sizeLimit": "1Mi"}}),
            StorageUsage(volumes={"a": MIB + 1}, containers={}),
            'Usage of EmptyDir volume "a" exceeds the limit "1Mi". ',
            id="a volume",
        ),
        pytest.param(
            a_pod(volumes={"a": {"sizeLimit": "0"}}),
            StorageUsage(volumes={"a": MIB}, containers={}),
            "",
            id="a limit of zero is none",
        ),
        pytest.param(
            a_pod(limits={"one": "1Mi", "two": "3Mi"}),
            StorageUsage(volumes={}, containers={"one": 2 * MIB}),
            'Container one exceeded its local ephemeral storage limit "1Mi". ',
            id="a container",
        ),
        pytest.param(
            a_pod(volumes={"a": {}}, limits={"one": "1Mi", "two": "3Mi"}),
            StorageUsage(volumes={"a": 4 * MIB}, containers={"one": 1}),
            "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ",
            id="a pod with its volumes",
        ),
        pytest.param(
            a_pod(volumes={"a": {"medium": "Memory"}}, limits={"one": "1Mi"}),
            StorageUsage(volumes={"a": 4 * MIB}, containers={"one": 1}, in_memory=frozenset({"a"})),
            "",
            id="memory is not disk",
        ),
    ],
)
def test_a_limit_that_is_exceeded_is_named_as_a_kubelet_names_it(pod: Any, usage: StorageUsage, expected: str) -> None:
    assert excess(storage_limits(pod), usage) == expected


def test_only_a_pod_with_limits_is_watched() -> None:
    assert not storage_limits(a_pod(volumes={"a": {}}))
    assert storage_limits(a_pod(volumes={"a": {"sizeLimit": "1Gi"}}))
    assert storage_limits(a_pod(limits={"one": "1Gi"}))


def test_usage_is_what_files_take_each_once(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"x" * MIB)
    os.link(tmp_path / "deep" / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100 * MIB)
    assert MIB <= disk_usage(tmp_path) < 2 * MIB
    assert disk_usage(tmp_path / "none") == 0
