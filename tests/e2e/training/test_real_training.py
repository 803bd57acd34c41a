"""Two nodes that really train, just as examples/training shows it, on this machine as an ordinary user has it.

They find each other by the names that their JobSet gives them, the loss falls, and all ranks come to the same result.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.local_node.conftest import LocalNode, a_local_node
from tests.e2e.training.conftest import (
    FAILS_FAST,
    TRAINER,
    add_runtime_that_fails_fast,
    condition,
    is_there,
    part,
    use_images,
)
from tests.support.clusters.real import namespace_for
from tests.support.clusters.shoal_up import SHOAL
from tests.support.programs.training_programs import EXAMPLE, Part
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
WITHIN = 120.0
Object = dict[str, Any]


@dataclass(frozen=True)
class Walkthrough:
    """Somebody who follows the example's README on a node."""

    node: LocalNode

    def types(self, command: str, *, namespace: str = "") -> str:
        """What a command of the README prints; in another namespace it is the same command."""
        assert f"$ {command}\n" in (EXAMPLE / "README.md").read_text(), f"the README does not say: {command}"
        return self.runs(command, namespace=namespace)

    def runs(self, command: str, *, namespace: str = "") -> str:
        kubectl = self.node.kubectl
        folders = f"{kubectl.binary.parent}:{Path(SHOAL).parent}"
        variables = {
            "PATH": f"{folders}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubectl.kubeconfig),
            "KUBECACHEDIR": str(kubectl.cache),
        }
        done = subprocess.run(
            ["bash", "-c", f"{command}{f' --namespace={namespace}' if namespace else ''}"],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}{self.shown()}"
        return done.stdout

    def job(self, name: str, namespace: str = "default") -> Object:
        found: Object = self.node.shoal.admin.request("GET", f"{TRAINER}/namespaces/{namespace}/trainjobs/{name}")
        return found

    def until(self, name: str, kind: str, namespace: str = "default") -> Object:
        """A condition of a job, as soon as it is true."""
        wait_until(
            lambda: condition(self.job(name, namespace), kind), f"{name} to be {kind}{self.shown()}", within=WITHIN
        )
        found = condition(self.job(name, namespace), kind)
        assert found is not None
        return found

    def pods(self, name: str, namespace: str = "default") -> list[str]:
        """The uids of the pods that a job has, less those that are about to go."""
        found = self.node.shoal.objects(f"/api/v1/namespaces/{namespace}/pods")
        label = "jobset.sigs.k8s.io/jobset-name"
        of_job = [pod["metadata"] for pod in found if pod["metadata"]["labels"].get(label) == name]
        return [one["uid"] for one in of_job if "deletionTimestamp" not in one]

    def shown(self) -> str:
        """What a person would look at next."""
        looks = (("get", "trainjobs,pods", "-A"), ("get", "events", "-A", "--sort-by=.lastTimestamp"))
        return "\n... while there was:\n" + "\n".join(self.node.kubectl.run(*look).stdout[-4000:] for look in looks)


@pytest.fixture(scope="module")
def walkthrough() -> Iterator[Walkthrough]:
    there = [one for one in Part if is_there(one)]
    with a_local_node("user") as node:
        use_images(node, *there)
        walkthrough = Walkthrough(node)
        walkthrough.types("kubectl create configmap training-scripts --from-file=examples/training/scripts")
        yield walkthrough


@pytest.fixture
def namespace(walkthrough: Walkthrough, request: pytest.FixtureRequest) -> Iterator[str]:
    """One of the test's own, which has the scripts, too."""
    with namespace_for(request.node.originalname, walkthrough.node.shoal.admin) as name:
        walkthrough.types(
            "kubectl create configmap training-scripts --from-file=examples/training/scripts", namespace=name
        )
        yield name


@pytest.mark.parametrize(
    ("needed", "name", "found"),
    [
        pytest.param(Part.PYTHON, "jax", ["found the others at jax-node-0-0.jax:29500"] * 2, id="JAX"),
        pytest.param(Part.PYTHON, "xgboost", ["found the others at xgboost-node-0-0.xgboost"] * 2, id="XGBoost"),
        pytest.param(Part.TORCH, "torch", ["found the others at torch-node-0-0.torch"] * 2, id="PyTorch"),
        # mpirun took the second one to another pod, over ssh.
        pytest.param(Part.MPI, "mpi", ["is on mpi-launcher-0-0", "is on mpi-node-0-0"], id="MPI"),
    ],
)
def test_two_nodes_train_together(walkthrough: Walkthrough, needed: Part, name: str, found: list[str]) -> None:
    part(needed)
    walkthrough.types(f"kubectl apply -f examples/training/{name}.yaml")
    said = walkthrough.runs(f"shoal logs trainjob/{name} -f")
    for rank in range(2):
        assert f"rank {rank} of 2 {found[rank]}\n" in said
        losses = [float(loss) for loss in re.findall(rf"rank {rank} step \d+ loss ([\d.]+)", said)]
        assert len(losses) >= 5, said
        assert losses == sorted(losses, reverse=True), said
        assert losses[-1] < losses[0] / 3, said
    results = re.findall(r"rank ([01]) result (.+)", said)
    assert sorted(rank for rank, _ in results) == ["0", "1"], said
    assert len({result for _, result in results}) == 1, "the ranks do not agree"
    walkthrough.until(name, "Complete")
    assert re.search(rf"^{name} +\S+ +Complete ", walkthrough.types("shoal get trainjobs"), re.MULTILINE)


def test_one_rank_is_followed_by_its_number(walkthrough: Walkthrough, namespace: str) -> None:
    part(Part.PYTHON)
    walkthrough.types("kubectl apply -f examples/training/jax.yaml", namespace=namespace)
    said = walkthrough.types("shoal logs trainjob/jax --rank 1 -f", namespace=namespace)
    assert "rank 1 of 2 found the others" in said
    assert "rank 1 result" in said
    assert "rank 0 " not in said
    waited = "kubectl wait --for=condition=Complete trainjob/jax --timeout=3m"
    assert walkthrough.types(waited, namespace=namespace) == "trainjob.trainer.kubeflow.org/jax condition met\n"


def test_the_example_of_the_sdk_runs(walkthrough: Walkthrough) -> None:
    python = part(Part.PYTHON) / "bin" / "python"
    command = "images/python/bin/python examples/training/sdk.py"
    assert f"$ {command}\n" in (EXAMPLE / "README.md").read_text()
    said = walkthrough.runs(command.replace("images/python/bin/python", str(python)))
    assert "hello from node 0 of 2" in said.splitlines()


def test_runs_at_the_same_time_keep_apart(walkthrough: Walkthrough, namespace: str) -> None:
    part(Part.PYTHON)
    kubectl = walkthrough.node.kubectl
    jax = yaml.safe_load((EXAMPLE / "jax.yaml").read_text())
    names = ("left", "right")
    for name in names:
        kubectl.apply({**jax, "metadata": {"name": name}}, namespace=namespace)
    for name in names:
        walkthrough.until(name, "Complete", namespace)
        said = walkthrough.runs(f"shoal logs trainjob/{name}", namespace=namespace)
        assert set(re.findall(r"found the others at (\S+)", said)) == {f"{name}-node-0-0.{name}:29500"}
        assert len(re.findall(r"rank [01] result", said)) == 2


def test_a_script_that_fails_on_one_node_fails_the_run(walkthrough: Walkthrough, namespace: str) -> None:
    part(Part.PYTHON)
    add_runtime_that_fails_fast(walkthrough.node.shoal.admin, namespace, like="jax-distributed")
    script = "import os, sys, time; sys.exit(3) if os.environ['JAX_PROCESS_ID'] == '1' else time.sleep(1000)"
    add_job(walkthrough, namespace, "broken", script, runtimeRef={"kind": "TrainingRuntime", "name": FAILS_FAST})
    failed = walkthrough.until("broken", "Failed", namespace)
    assert failed["reason"] == "FailedJobs"
    assert failed["message"] == "jobset failed due to one or more job failures (first failed job: broken-node-0)"
    wait_until(lambda: not walkthrough.pods("broken", namespace), "the node that waits for nothing to go")


def test_a_run_that_takes_too_long_is_ended(walkthrough: Walkthrough, namespace: str) -> None:
    part(Part.PYTHON)
    add_job(walkthrough, namespace, "endless", "import time; time.sleep(1000)", activeDeadlineSeconds=4)
    failed = walkthrough.until("endless", "Failed", namespace)
    assert failed["reason"] == "DeadlineExceeded"
    wait_until(lambda: not walkthrough.pods("endless", namespace), "its pods to go")


def test_a_run_that_is_suspended_and_resumed_starts_anew(walkthrough: Walkthrough, namespace: str) -> None:
    part(Part.PYTHON)
    kubectl = walkthrough.node.kubectl
    jax = yaml.safe_load((EXAMPLE / "jax.yaml").read_text())
    jax["spec"]["trainer"]["env"] = [{"name": "STEPS", "value": "1000000000"}]
    kubectl.apply(jax, namespace=namespace)

    def trains() -> bool:
        said = kubectl.run("logs", "-l", "batch.kubernetes.io/job-completion-index=1", namespace=namespace).stdout
        return "rank 1 step 10 " in said or bool(re.search(r"rank 1 step \d+0 loss 0\.", said))

    wait_until(trains, "the run to train", within=WITHIN)
    first = walkthrough.pods("jax", namespace)
    patch = "kubectl patch trainjob jax --type=merge --patch="
    walkthrough.types(patch + """'{"spec": {"suspend": true}}'""", namespace=namespace)
    assert walkthrough.until("jax", "Suspended", namespace)["reason"] == "Suspended"
    wait_until(lambda: not walkthrough.pods("jax", namespace), "its pods to go", within=WITHIN)

    walkthrough.types(patch + """'{"spec": {"suspend": false}}'""", namespace=namespace)
    wait_until(lambda: len(walkthrough.pods("jax", namespace)) == 2, "pods to come again", within=WITHIN)
    assert not {*first} & {*walkthrough.pods("jax", namespace)}
    wait_until(trains, "the run to train again", within=WITHIN)
    conditions = walkthrough.job("jax", namespace)["status"]["conditions"]
    assert [(one["type"], one["status"], one["reason"]) for one in conditions] == [("Suspended", "False", "Resumed")]
    kubectl("delete", "trainjob", "jax", namespace=namespace)
    wait_until(lambda: not walkthrough.pods("jax", namespace), "its pods to go with it", within=WITHIN)


def add_job(walkthrough: Walkthrough, namespace: str, name: str, script: str, **spec: Any) -> None:
    """A run of two nodes that each run a script."""
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "jax-distributed"},
            "trainer": {"numNodes": 2, "command": ["python", "-c", script]},
            **spec,
        },
    }
    walkthrough.node.kubectl.apply(job, namespace=namespace)
