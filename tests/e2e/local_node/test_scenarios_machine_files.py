"""What a pod sees of the machine's files: what programs need, what its volumes name, and nothing else."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local_node.conftest import LocalNode
from tests.e2e.local_node.scenes import Object, Scene, a_container, a_pod_of, a_pod_spec, an_idle_pod
from tests.support.programs.ordinary_user import USER, is_root

pytestmark = [pytest.mark.kube, pytest.mark.slow]

PLACES = ("/root", "/home", "/srv", "/mnt", "/var/lib", "/var/tmp", "/tmp", "/etc", "/boot", "/media", "/")
"""Where a machine keeps what is nobody else's business."""


@pytest.fixture
def new_files(local_node: LocalNode) -> Iterator[list[Path]]:
    """Adds files that anybody may read, wherever this test may write; they are gone afterwards."""
    made: list[Path] = []
    for place in [*map(Path, PLACES), local_node.folder]:
        file = place / f"shoal-test-{secrets.token_hex(8)}"
        try:
            file.write_text("of the machine\n")
        except OSError:
            continue
        made.append(file)
        if is_root():
            os.chown(file, USER, USER)
        file.chmod(0o644)
    yield made
    for file in made:
        file.unlink()


@pytest.mark.parametrize("context", [{}, {"privileged": True}], ids=["plain", "privileged"])
def test_a_file_made_outside_of_the_listed_folders_is_not_seen(
    context: Object, scene: Scene, request: pytest.FixtureRequest
) -> None:
    idle = a_container(["sleep", "infinity"], securityContext=context)
    scene.apply(a_pod_of("idle", a_pod_spec(idle)))
    scene.until("condition=Ready", "pod/idle")
    files: list[Path] = request.getfixturevalue("new_files")  # only now: the pod runs already
    assert len(files) >= 2
    tries = "; ".join(f"cat {file} 2>/dev/null" for file in files)
    assert scene.run_in("idle", "sh", "-c", f"{tries}; true") == ""


def test_programs_of_the_machine_and_the_interpreter_with_its_packages_are_there(scene: Scene) -> None:
    scene.apply(an_idle_pod("idle"))
    scene.until("condition=Ready", "pod/idle")
    tries = 'import msgspec, ssl, sqlite3, shoal; print("found", len(ssl.create_default_context().get_ca_certs()) > 0)'
    assert scene.run_in("idle", "python3", "-c", tries).startswith("found")
    assert scene.run_in("idle", "sh", "-c", "id -un 0; date +%Z; test -x /usr/bin/env && echo there").endswith(
        "there\n"
    )


@pytest.mark.parametrize("name", ["api.sock", "kubeconfig", "pki/ca.key", "", "node/pods", "node/runtime.sock"])
def test_a_host_path_into_the_data_dir_is_never_mounted(name: str, scene: Scene) -> None:
    refused(scene, scene.node.shoal.data_dir / name)


def test_a_link_to_the_data_dir_is_never_mounted(scene: Scene) -> None:
    link = scene.node.folder / f"link-{secrets.token_hex(4)}"
    link.symlink_to(scene.node.shoal.data_dir)
    refused(scene, link / "api.sock")
    refused(scene, link, type_="DirectoryOrCreate")


def test_nothing_is_made_in_the_data_dir_for_a_host_path(scene: Scene) -> None:
    for type_ in ("DirectoryOrCreate", "FileOrCreate"):
        path = scene.node.shoal.data_dir / f"new-{type_.lower()}"
        refused(scene, path, type_=type_)
        assert not path.exists()


def test_a_part_of_a_host_path_that_lies_in_the_data_dir_is_never_mounted(scene: Scene) -> None:
    shoal = scene.node.shoal
    container = a_container(
        ["sleep", "infinity"],
        volumeMounts=[{"name": "host", "mountPath": "/host", "subPath": f"{shoal.data_dir.name}/kubeconfig"}],
    )
    volumes: dict[str, Object] = {"host": {"hostPath": {"path": str(shoal.data_dir.parent)}}}
    scene.apply(a_pod_of("part", a_pod_spec(container, volumes=volumes)))
    reason = ".status.containerStatuses[0].state.waiting.reason"
    scene.until_true(lambda: scene.of("pod/part", reason) not in ("", "ContainerCreating"), "the refusal")
    message = scene.of("pod/part", ".status.containerStatuses[0].state.waiting.message")
    assert "no pod may see it" in message


def refused(scene: Scene, path: Path, *, type_: str = "") -> None:
    """A pod with this hostPath waits, and an event says why."""
    name = f"host-{secrets.token_hex(4)}"
    container = a_container(["sleep", "infinity"], volumeMounts=[{"name": "host", "mountPath": "/host"}])
    volumes: dict[str, Object] = {"host": {"hostPath": {"path": str(path), "type": type_}}}
    scene.apply(a_pod_of(name, a_pod_spec(container, volumes=volumes)))
    of_pod = ("events", f"--field-selector=involvedObject.name={name},reason=FailedMount")
    scene.until_true(
        lambda: f"{path} cannot be mounted" in scene.kubectl("get", *of_pod, "-o", "jsonpath={.items[*].message}"),
        f"the refusal of {path}",
    )
    assert scene.of(f"pod/{name}", ".status.phase") == "Pending"
