"""Clusters on which training runs: simulated nodes on either engine, and this machine with the example's images."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.kubernetes import AdminApi
from shoal.training.runtimes import built_in_runtimes
from tests.e2e.local_node.conftest import LocalNode
from tests.support.clusters.both_engines import engine_options
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.training_programs import EXAMPLE, Part, Unavailable, install, is_required

Object = dict[str, Any]
PROGRAM = Path(__file__).with_name("sdk_program.py")
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
FAILS_FAST = "fails-fast"


@dataclass(frozen=True)
class Sdk:
    """The Kubeflow SDK in an environment of its own, with one cluster in front of it."""

    python: Path
    kubeconfig: Path

    def tells(self, story: str, namespace: str, **settings: Any) -> Object:
        """What the program of sdk_program.py prints."""
        everything = {"kubeconfig": str(self.kubeconfig), "namespace": namespace, **settings}
        # Only what the SDK itself brings along is seen: nothing of this process's own packages.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        done = subprocess.run(
            [str(self.python), str(PROGRAM), story, json.dumps(everything)],
            env=kept,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        assert done.returncode == 0, f"the SDK's program failed: {done.stderr[-3000:]}"
        told: Object = json.loads(done.stdout.splitlines()[-1])
        return told


def part(wanted: Part) -> Path:
    """The folder of a part of what training runs on; skips, in one line, where it cannot be had."""
    try:
        return install(wanted)
    except Unavailable as unavailable:
        if not is_required():
            pytest.skip(str(unavailable))
        raise


def is_there(wanted: Part) -> bool:
    """Whether a part can be had; where it must be there it is an error that it cannot."""
    try:
        part(wanted)
    except pytest.skip.Exception:
        return False
    return True


@pytest.fixture(scope="session")
def sdk_python() -> Path:
    return part(Part.PYTHON) / "bin" / "python"


@contextmanager
def simulated(
    folder: Path, request: pytest.FixtureRequest, *options: str, engine: str = "embedded", nodes: str = "2x8:H100"
) -> Iterator[Shoal]:
    """A whole Shoal with simulated nodes, on either engine."""
    shoal = Shoal(folder / "data", f"--sim={nodes}", *engine_options(engine, request), *options)
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready"), f"shoal up ended ({process.wait()}): {line}"
        yield shoal
        process.terminate()
        process.wait()


def use_images(node: LocalNode, *parts: Part) -> None:
    """Lets a node have the example's images, as its README does; those of which a part is missing are not there."""
    images = node.folder / "images"
    images.mkdir()
    for one in parts:
        (images / one).symlink_to(install(one))
    (node.shoal.data_dir / "images.yaml").write_text((EXAMPLE / "images.yaml").read_text())


def add_runtime_that_fails_fast(admin: AdminApi, namespace: str, *, like: str) -> None:
    """A runtime of a namespace whose nodes are tried once; those of others are restarted for minutes."""
    add_runtime(admin, namespace, FAILS_FAST, like=like, job={"backoffLimit": 0})


def add_runtime(
    admin: AdminApi, namespace: str, name: str, *, like: str, job: Object | None = None, pod: Object | None = None
) -> None:
    """A runtime of a namespace that is like one of ours, with other fields of its Jobs or pods."""
    found: Object = json.loads(json.dumps(built_in_runtimes()[like]))
    for one in found["spec"]["template"]["spec"]["replicatedJobs"]:
        spec = one["template"]["spec"]
        spec.update(job or {})
        spec["template"]["spec"].update(pod or {})
    runtime = {
        "apiVersion": found["apiVersion"],
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "labels": found["metadata"]["labels"]},
        "spec": found["spec"],
    }
    admin.request("POST", f"{TRAINER}/namespaces/{namespace}/trainingruntimes", runtime)


def condition(job: Object, kind: str) -> Object | None:
    """A condition of a TrainJob that is true."""
    conditions = job.get("status", {}).get("conditions", [])
    return next((one for one in conditions if (one["type"], one["status"]) == (kind, "True")), None)
