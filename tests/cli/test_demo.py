"""``shoal demo`` on a running Shoal: its gangs start in their order, and all of it goes again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

GROVE = "/apis/grove.io/v1alpha1"
KINDS = (f"{GROVE}/podcliquesets", f"{GROVE}/podcliques", "/apis/scheduler.grove.io/v1alpha1/podgangs")


@pytest.fixture
def shoal(tmp_path: Path) -> Iterator[Shoal]:
    shoal = Shoal(tmp_path / "data")
    with shoal.foreground():
        yield shoal
        shoal("down")


def test_its_gangs_start_and_go_without_a_trace(shoal: Shoal) -> None:
    made = shoal("demo")
    assert made.returncode == 0, made.stderr
    assert "  PodCliqueSet             assistant, rollouts\n" in made.stdout
    assert "  TrainJob                 finetune\n" in made.stdout, "no node of this machine could run the other one"
    typed = [line for line in made.stdout.splitlines() if line.startswith("  kubectl")]
    assert "  kubectl get podgangs -A" in typed
    assert [line for line in typed if len(line) > 80] == []

    def available() -> dict[str, int]:
        sets = shoal.objects(f"{GROVE}/podcliquesets")
        return {one["metadata"]["name"]: one.get("status", {}).get("availableReplicas", 0) for one in sets}

    wait_until(lambda: available()["assistant"] == 1, "the model server to be available")
    gangs = {one["metadata"]["name"]: one["metadata"]["labels"] for one in shoal.objects(KINDS[2])}
    assert sorted(gangs) == ["assistant-0", "assistant-0-model-0", "rollouts-0"]
    assert {labels["grove.io/scheduler-backend"] for labels in gangs.values()} == {"kai"}
    nodes = {pod["spec"].get("nodeName", "") for pod in shoal.objects("/api/v1/namespaces/demo-serving/pods")}
    assert all(node.startswith("demo-") for node in nodes)

    def trains() -> bool:
        said = shoal("get", "trainjobs", "--namespace=demo-research").stdout
        return "finetune   torch-distributed   Running" in said

    wait_until(trains, "the training run to run")
    said = shoal("logs", "trainjob/finetune", "--namespace=demo-research", "--rank=1")
    assert "epoch 3 loss 1.17" in said.stdout, said.stderr

    removed = shoal("demo", "--remove")
    assert removed.returncode == 0, removed.stderr
    assert [kind for kind in KINDS if shoal.objects(kind)] == []
