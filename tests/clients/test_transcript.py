"""What is compared between two servers is what they mean, and nothing that differs from run to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.transcript import Script, normalised


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("uid: 7f3ca1f0-6f8e-4b47-8d4b-0a3d9b3f8a11", "uid: 11111111-6f8e-4b47-8d4b-0a3d9b3f8a11"),
        ('creationTimestamp: "2026-01-31T09:30:00Z"', 'creationTimestamp: "2026-01-31T09:31:07Z"'),
        ('resourceVersion: "12"', 'resourceVersion: "1234"'),
        (
            "web   ClusterIP   10.96.1.2   <none>   80/TCP   3s\n",
            "web   ClusterIP   10.96.100.200   <none>   80/TCP   1m5s\n",
        ),
        ("a   2y320d (x3 over 2y320d)   Warning\n", "a   1d (x3 over 3d2h)   Warning\n"),
        (
            "* spec.b: Required value\n* spec.a: Required value\n",
            "* spec.a: Required value\n* spec.b: Required value\n",
        ),
    ],
    ids=["uid", "time", "version", "address and age", "age in years", "order of problems"],
)
def test_what_differs_by_run_is_named(left: str, right: str) -> None:
    assert normalised(left) == normalised(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("replicas: 3", "replicas: 4"),
        ("deployment.apps/web created", "deployment.apps/web configured"),
        ("  name: a", "    name: a"),
        ("exit code 1", "exit code 2"),
    ],
    ids=["value", "word", "indent", "exit code"],
)
def test_what_a_server_says_is_kept(left: str, right: str) -> None:
    assert normalised(left) != normalised(right)


def test_a_script_is_commands_and_files(tmp_path: Path) -> None:
    path = tmp_path / "script.txt"
    path.write_text(
        "# Why.\nkubectl get \\\n  pods\n\nkubectl apply -f a.yaml\n-- a.yaml --\nname: @ns\n-- b.yaml --\n"
    )
    script = Script.read(path, "mine")
    assert script.commands == ("kubectl get pods", "kubectl apply -f a.yaml")
    assert script.files == {"a.yaml": "name: mine\n", "b.yaml": ""}
