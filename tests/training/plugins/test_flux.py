"""Flux: what is put into pods, how the command is handed on, and the programs themselves."""

from __future__ import annotations

import base64
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shoal.training.framework import Unbuildable
from shoal.training.plugins.curve import certificate, z85
from tests.training.builders import (
    a_container,
    a_runtime,
    a_train_job,
    a_trainer,
    container_of,
    objects_of,
    pod_of,
)


def flux(node: dict[str, Any] | None = None, **policy: Any) -> Any:
    return a_runtime(a_trainer(node or {"name": "node", "image": "ubuntu:jammy"}), ml={"flux": policy})


def made(trainer: dict[str, Any], runtime: Any = None) -> dict[str, Any]:
    return objects_of(a_train_job(trainer={"numNodes": 2, **trainer}), runtime or flux())


def scripts(trainer: dict[str, Any], runtime: Any = None) -> dict[str, str]:
    data: dict[str, str] = made(trainer, runtime)["ConfigMap/demo-flux-entrypoint"]["data"]
    return data


ENTRYPOINT = ["/bin/bash", "/etc/flux-config/entrypoint.sh"]
COMMANDS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "command and arguments": ({"command": ["lmp", "-v", "x", "4"], "args": ["-nocite"]}, {}, "lmp -v x 4 -nocite"),
    "what has blanks is quoted": ({"command": ["bash", "-c", "echo a b"]}, {}, "bash -c 'echo a b'"),
    "a single word is a whole line": ({"command": ["lmp -v x 4"]}, {}, "lmp -v x 4"),
    "the runtime's where the TrainJob has none": ({}, {"command": ["lmp"], "args": ["-in", "a"]}, "lmp -in a"),
    "each on its own": ({"args": ["-in", "b"]}, {"command": ["lmp"], "args": ["-in", "a"]}, "lmp -in b"),
    "none, for people": ({}, {}, ""),
}


@pytest.mark.parametrize(("trainer", "runtime", "line"), COMMANDS.values(), ids=COMMANDS)
def test_the_command_becomes_the_argument_of_the_entry_point(trainer: Any, runtime: Any, line: str) -> None:
    node = container_of(made(trainer, flux(a_container(**runtime)))["JobSet/demo"])
    assert node["command"] == [*ENTRYPOINT, line]
    assert "args" not in node


def test_volumes_mounts_and_the_installer() -> None:
    pod = pod_of(made({})["JobSet/demo"])
    scripts_volume = "demo-flux-entrypoint"
    assert pod["volumes"] == [
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": scripts_volume, "configMap": {"name": scripts_volume, "defaultMode": 493}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": "demo-flux-curve", "defaultMode": 256}},
    ]
    installed = {"name": "flux-install", "mountPath": "/mnt/flux"}
    configured = {"name": scripts_volume, "mountPath": "/etc/flux-config", "readOnly": True}
    assert pod["initContainers"] == [
        {
            "name": "flux-installer",
            "image": "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
            "command": ["/bin/bash", "/etc/flux-config/init.sh"],
            "volumeMounts": [installed, configured],
        }
    ]
    assert pod["containers"][0]["volumeMounts"] == [
        installed,
        {"name": "spack-install", "mountPath": "/opt/software"},
        configured,
        {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
        {"name": "shared-memory", "mountPath": "/dev/shm", "readOnly": True},
    ]


def test_settings_come_from_the_runtimes_variables_and_then_the_train_jobs() -> None:
    node = a_container(env=[{"name": "FLUX_QUEUE_POLICY", "value": "easy"}, {"name": "FLUX_VIEW_IMAGE", "value": "a"}])
    trainer = {"env": [{"name": "FLUX_VIEW_IMAGE", "value": "b"}, {"name": "FLUX_NETWORK_DEVICE", "value": "ib0"}]}
    result = made(trainer, flux(node))
    assert pod_of(result["JobSet/demo"])["initContainers"][0]["image"] == "b"
    broker = _broker(result["ConfigMap/demo-flux-entrypoint"]["data"]["init.sh"])
    assert broker["bootstrap"]["default_bind"] == "tcp://ib0:%p"
    assert broker["sched-fluxion-qmanager"]["queue-policy"] == "easy"


def test_brokers_find_each_other() -> None:
    script = scripts({"numNodes": 3})["init.sh"]
    bootstrap = _broker(script)["bootstrap"]
    assert bootstrap == {
        "curve_cert": "/mnt/flux/config/etc/curve/curve.cert",
        "default_port": 8050,
        "default_bind": "tcp://eth0:%p",
        "default_connect": "tcp://%h.demo.team.svc.cluster.local:%p",
        "hosts": [{"host": "demo-node-0-[0-2]"}],
    }
    assert "printf '%s\\n' 'demo-node-0-[0-2]'" in script


FLAGS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "of the policy": ({}, {"numProcPerNode": 2}, "-N 2 -n 4", "--cores=0-1"),
    "of the TrainJob": ({"numProcPerNode": 4}, {"numProcPerNode": 2}, "-N 2 -n 8", "--cores=0-3"),
    "one task": ({"numNodes": 1}, {}, "-N 1 -n 1", "--cores=0"),
    "with GPUs": (
        {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}, {}, "-N 2 -n 2 -g 4", "--cores=0 --gpu=0-3",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("trainer", "policy", "flags", "resources"), FLAGS.values(), ids=FLAGS)
def test_what_flux_is_told_to_run(trainer: Any, policy: Any, flags: str, resources: str) -> None:
    script = scripts(trainer, flux(**policy))["entrypoint.sh"]
    assert f'flux run {flags} "${{command[@]}}"' in script
    assert f" {resources} > " in script
    assert "lead=demo-node-0-0\n" in script


@pytest.mark.parametrize("name", ["entrypoint.sh", "init.sh"])
def test_the_programs_are_sound_and_whole(name: str, tmp_path: Path) -> None:
    text = scripts({})[name]
    assert not re.findall(r"@[A-Z_]+@", text)
    file = tmp_path / name
    file.write_text(text)
    subprocess.run(["bash", "-n", str(file)], check=True)


@pytest.mark.parametrize("host", ["demo-node-0-0", "demo-node-0-1"], ids=["the lead", "another"])
def test_the_entry_point_starts_flux(host: str, tmp_path: Path) -> None:
    """The program runs with stand-ins for Flux and for the places that it writes to."""
    text = scripts({"command": ["bash", "-c", "echo 'a  b'"]})["entrypoint.sh"]
    line = made({"command": ["bash", "-c", "echo 'a  b'"]})["JobSet/demo"]
    argument = container_of(line)["command"][2]
    for place in ("mnt/flux/software", "mnt/flux/view/bin", "mnt/flux/view/lib/python3.11", "opt/software", "curve"):
        (tmp_path / place).mkdir(parents=True)
    for place in ("etc/flux/system", "etc/curve"):
        (tmp_path / "mnt/flux/config" / place).mkdir(parents=True)
    (tmp_path / "mnt/flux/config/etc/flux/system/hostlist").write_text("demo-node-0-[0-1]\n")
    (tmp_path / "curve/curve.cert").write_text("secret")
    stand_in = tmp_path / "bin"
    stand_in.mkdir()
    log = tmp_path / "log"
    (stand_in / "flux").write_text(f'#!/bin/bash\nprintf "<%s>" "$@" >> {log}\necho >> {log}\n')
    (stand_in / "hostname").write_text(f"#!/bin/bash\necho {host}\n")
    for program in stand_in.iterdir():
        program.chmod(0o755)
    for place in ("/mnt/flux", "/opt/software", " /curve/"):
        text = text.replace(place, place.replace("/", f"{tmp_path}/", 1))
    script = tmp_path / "entrypoint.sh"
    script.write_text(text)
    path = f"{stand_in}:/usr/bin:/bin"
    subprocess.run(["/bin/bash", str(script), argument], check=True, env={"PATH": path}, capture_output=True)
    encoded, started = log.read_text().splitlines()
    assert encoded == "<R><encode><--hosts=demo-node-0-[0-1]><--cores=0>"
    assert started.startswith("<start><-o><--config>")
    if host.endswith("-0"):
        assert started.endswith("<flux><run><-N><2><-n><2><bash><-c><echo 'a  b'>")
    else:
        assert "<run>" not in started
    certificate_file = tmp_path / "mnt/flux/config/etc/curve/curve.cert"
    assert certificate_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spec", [{}, {"trainer": {}}], ids=["no trainer", "no number"])
def test_the_number_of_nodes_must_be_said(spec: dict[str, Any]) -> None:
    with pytest.raises(Unbuildable, match=r"set spec\.trainer\.numNodes"):
        objects_of(a_train_job(**spec), flux())


class TestCertificate:
    def test_z85_is_that_of_zeromq(self) -> None:
        # From the specification of Z85 (ZeroMQ RFC 32).
        assert z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
        with pytest.raises(ValueError, match="in fours"):
            z85(b"abc")

    def test_it_is_a_pair_of_keys_and_never_changes(self) -> None:
        text = certificate("demo", "uid-1")
        assert text == certificate("demo", "uid-1")
        assert text != certificate("demo", "uid-2")
        public, secret = re.findall(r'-key = "(.{40})"', text)
        own = X25519PrivateKey.from_private_bytes(_unz85(secret)).public_key().public_bytes_raw()
        assert z85(own) == public
        assert 'metadata\n    name = "demo"\ncurve\n' in text

    def test_it_is_in_a_secret(self) -> None:
        data = made({})["Secret/demo-flux-curve"]["data"]
        assert base64.b64decode(data["curve.cert"]).startswith(b"#   ZeroMQ CURVE **Secret** Certificate\n")


def _broker(script: str) -> dict[str, Any]:
    return tomllib.loads(script.split("<<'TOML'\n")[1].split("\nTOML\n", maxsplit=1)[0])


def _unz85(text: str) -> bytes:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    result = b""
    for begin in range(0, len(text), 5):
        number = 0
        for digit in text[begin : begin + 5]:
            number = number * 85 + digits.index(digit)
        result += number.to_bytes(4, "big")
    return result
