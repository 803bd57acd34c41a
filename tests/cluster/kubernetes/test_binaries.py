from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cluster.kubernetes import Binaries, MissingBinaries, find_binaries
from shoal.cluster.kubernetes.binaries import minor_version

ALL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def folder_with(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_the_folders_given_are_the_only_ones_searched(tmp_path: Path) -> None:
    on_path = folder_with(tmp_path / "path", *ALL)
    given = folder_with(tmp_path / "given", "etcd")
    with pytest.raises(MissingBinaries, match=r"kube-apiserver not found in .*given: build them") as missing:
        find_binaries([given], environment={"PATH": str(on_path)})
    assert missing.value.names == ("kube-apiserver",)


def test_parts_may_lie_in_different_folders(tmp_path: Path) -> None:
    first, second = folder_with(tmp_path / "a", "etcd"), folder_with(tmp_path / "b", "etcd", "kube-apiserver")
    found = find_binaries([first, second])
    assert (found.etcd, found.kube_apiserver) == (first / "etcd", second / "kube-apiserver")
    assert found.kube_controller_manager is None


def test_path_goes_before_the_cache_and_the_cache_is_found_without_path(tmp_path: Path) -> None:
    folder_with(tmp_path / "cache" / "kube" / "etcd-v3", "etcd")
    built = folder_with(tmp_path / "cache" / "kube" / "kubernetes-v1", *ALL[1:])
    folder_with(tmp_path / "cache" / "kube" / "kubernetes-v2.1.building", *ALL[1:])
    own = folder_with(tmp_path / "own", "etcd")
    found = find_binaries(environment={"PATH": str(own), "SHOAL_CACHE": str(tmp_path / "cache")})
    assert found.etcd == own / "etcd"
    assert found.kube_apiserver == built / "kube-apiserver"
    assert found.kube_scheduler == built / "kube-scheduler"


def test_a_file_that_cannot_be_run_is_no_binary(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "bin", *ALL)
    (folder / "etcd").chmod(0o644)
    with pytest.raises(MissingBinaries, match=r"^etcd not found"):
        find_binaries([folder])


@pytest.mark.parametrize(
    ("script", "minor"),
    [
        pytest.param("echo Kubernetes v1.36.4", 36, id="a release"),
        pytest.param("echo Kubernetes v1.37.0-alpha.1+abc", 37, id="a preview"),
        pytest.param("echo hello", None, id="something else"),
        pytest.param("exit 3", None, id="fails"),
        pytest.param("exec sleep 300", None, id="hangs"),
    ],
)
def test_a_version_is_what_the_server_says_it_is(tmp_path: Path, script: str, minor: int | None) -> None:
    program = tmp_path / "kube-apiserver"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert minor_version(program, within=0.5) == minor


def test_a_real_server_says_its_version(binaries: Binaries) -> None:
    assert minor_version(binaries.kube_apiserver) == 36


def test_a_file_that_is_no_program_has_no_version(tmp_path: Path) -> None:
    assert minor_version(tmp_path / "missing") is None


def test_nothing_anywhere_names_both(tmp_path: Path) -> None:
    with pytest.raises(MissingBinaries, match="etcd and kube-apiserver not found in no folder at all: build them"):
        find_binaries(environment={"PATH": "", "SHOAL_CACHE": str(tmp_path)})
