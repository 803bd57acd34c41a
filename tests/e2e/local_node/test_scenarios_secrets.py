"""What a pod keeps to itself: an intruder beside it, with all the rights that a pod can ask for, gets none of it.

The node's data dir lies where pods see the machine's own files, as it does by default, so that it has to be hidden.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.local_node.conftest import LocalNode, a_local_node
from tests.e2e.local_node.machine import Listening, listening, own_addresses
from tests.e2e.local_node.processes import descendants
from tests.e2e.local_node.scenes import Object, Scene, a_container, a_pod_of, a_pod_spec, a_scene, program
from tests.support.node.keyring import keep_key
from tests.support.programs.ordinary_user import is_root

pytestmark = [pytest.mark.kube, pytest.mark.slow]

CLONE = Path(__file__).parents[3]
KEY = "a key of whoever started it"
INTRUDERS: dict[str, tuple[Object, Object]] = {
    "plain": ({}, {}),
    "privileged": ({"privileged": True}, {}),
    "in-network-of-node": ({"privileged": True}, {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}),
    "somebody": ({"runAsUser": 1234}, {}),
}
"""Their security contexts, and what else is special about their pods."""


@pytest.fixture(scope="module", params=["root", "user"])
def node(request: pytest.FixtureRequest) -> Iterator[LocalNode]:
    keep_key(KEY, b"secret")
    with a_local_node(request.param, parent=a_visible_folder(request.param)) as node:
        yield node


@pytest.fixture
def scene(node: LocalNode, request: pytest.FixtureRequest) -> Iterator[Scene]:
    with a_scene(node, request.node.originalname) as scene:
        yield scene


@pytest.mark.timeout(900)
def test_the_secrets_of_a_pod_are_not_had_by_another(scene: Scene) -> None:
    text = secrets.token_hex(16)
    scene.apply(*a_victim(text))
    scene.until("condition=Ready", "pod/victim")
    with listening() as machine:
        wanted = json.dumps(all_there_is(scene, text, machine))
        scene.apply(*(an_intruder(name, wanted, *special) for name, special in INTRUDERS.items()))
        for name in INTRUDERS:
            # Each looks into every file of the machine that it can see.
            scene.until("jsonpath={.status.phase}=Succeeded", f"pod/{name}", within=300)

    got = {name: json.loads(scene.kubectl("logs", name)) for name in INTRUDERS}
    assert got == {name: {} for name in INTRUDERS}
    # The one who has the secret finds it by the same search, so that this is known to find something.
    found = scene.program_in("victim", "intrude", wanted)["files"]
    assert any(path.startswith("/secret/") for path in found)
    assert {"/tmp/password", "/dev/shm/password"} <= set(found)


def test_a_volume_of_the_whole_machine_does_not_show_the_data_dir(scene: Scene) -> None:
    data_dir = scene.node.shoal.data_dir
    volumes: dict[str, Object] = {"machine": {"hostPath": {"path": "/"}}}
    looking = a_container(
        ["sh", "-c", f"ls -d /machine/etc; ls -A /machine{data_dir} && echo nothing else"],
        volumeMounts=[{"name": "machine", "mountPath": "/machine"}],
        securityContext={"privileged": True},
    )
    scene.apply(a_pod_of("looking", a_pod_spec(looking, volumes=volumes, restartPolicy="Never")))
    scene.until("jsonpath={.status.phase}=Succeeded", "pod/looking")

    assert scene.kubectl("logs", "looking").splitlines() == ["/machine/etc", "nothing else"]


def a_victim(text: str) -> list[Object]:
    """A pod with a secret in a volume and in a variable, that puts it wherever it can."""
    variables = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "victim", "key": "password"}}}]
    volumes: dict[str, Object] = {"secret": {"secret": {"secretName": "victim"}}, "own": {"emptyDir": {}}}
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes]
    script = "for place in /own /tmp /dev/shm /var /mnt; do cp /secret/password $place; done; exec sleep infinity"
    container = a_container(["sh", "-c", script], env=variables, volumeMounts=mounts)
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "victim"}, "stringData": {"password": text}},
        a_pod_of("victim", a_pod_spec(container, volumes=volumes)),
    ]


def an_intruder(name: str, wanted: str, context: Object, more: Object) -> Object:
    container = a_container(program("intrude", wanted), securityContext=context)
    return a_pod_of(name, a_pod_spec(container, restartPolicy="Never", **more))


def all_there_is(scene: Scene, text: str, machine: Listening) -> dict[str, Any]:
    """All that an intruder could know, so that it need not guess."""
    shoal = scene.node.shoal
    kept = next(path for path in shoal.data_dir.rglob("password") if path.is_file())
    unix_sockets = [str(path) for path in shoal.data_dir.rglob("*.sock")]
    assert {"runtime.sock", "local.sock", "api.sock"} <= {Path(path).name for path in unix_sockets}
    ports = [endpoint.rsplit(":", 1)[-1] for endpoint in shoal.endpoints().values()]
    parts = [part["pid"] for part in shoal.status()["parts"]]
    return {
        "text": text,
        "hidden": str(shoal.data_dir),
        "sockets": unix_sockets,
        "handle": handle_of(kept.resolve()),
        "abstract": machine.abstract,
        "listening": [f"{host}:{port}" for host in own_addresses() for port in (*machine.ports, *ports)],
        "pids": [os.getpid(), *parts, *descendants(shoal.part("containers")["pid"])],
        "key": KEY,
        "api": f"/api/v1/namespaces/{scene.namespace}/secrets/victim",
    }


def handle_of(path: Path) -> dict[str, Any]:
    """The kernel's own name of a file, by which those who have the right may open it."""
    room, header, working_directory = 128, 8, -100
    handle = ctypes.create_string_buffer(room.to_bytes(4, sys.byteorder) + bytes(4 + room))
    kernel = ctypes.CDLL(None, use_errno=True)
    mount = ctypes.byref(ctypes.c_int())
    failed = kernel.name_to_handle_at(working_directory, os.fsencode(path), handle, mount, 0)
    assert not failed, os.strerror(ctypes.get_errno())
    size = int.from_bytes(handle.raw[:4], sys.byteorder)
    kind = int.from_bytes(handle.raw[4:header], sys.byteorder, signed=True)
    return {"kind": kind, "name": handle.raw[header : header + size].hex()}


def a_visible_folder(who: str) -> Path:
    """A folder that pods see, unless the node hides it; the machine's /tmp where this user has none."""
    folder = CLONE / "build"
    folder.mkdir(exist_ok=True)
    is_open = who == "root" or not is_root() or all(parent.stat().st_mode & 0o001 for parent in folder.parents)
    return folder if is_open else Path("/tmp")
