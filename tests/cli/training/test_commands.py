"""``shoal get``, ``shoal logs`` and ``shoal runtimes`` on a running Shoal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.command import shoal as command
from tests.support.shoal_up import Shoal
from tests.support.waiting import wait_until

JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"


@pytest.fixture(scope="module")
def shoal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    shoal = Shoal(tmp_path_factory.mktemp("training") / "data", "--sim=1x8:H100")
    with shoal.foreground():
        yield shoal
        shoal("down")


def train(shoal: Shoal, name: str, **spec: object) -> None:
    body = {"metadata": {"name": name}, "spec": {"runtimeRef": {"name": "jax-distributed"}, **spec}}
    body |= {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    shoal.admin.request("POST", JOBS, body)


def test_a_run_is_followed_from_before_its_first_pod_to_its_end(shoal: Shoal) -> None:
    train(shoal, "two", trainer={"numNodes": 2, "command": ["train"]})
    followed = shoal("logs", "trainjob/two", "--follow")
    assert followed.returncode == 0, followed.stderr
    lines = followed.stdout.splitlines()
    for rank in range(2):
        assert any(line.startswith(f"node-{rank} | ") for line in lines)
    alone = shoal("logs", "trainjob/two", "--rank=1", "--tail=1").stdout
    assert alone.splitlines() == ["simulated: ended with exit code 0 (Completed)"]
    listed = shoal("get", "trainjobs").stdout
    assert listed.splitlines()[1].split()[:4] == ["two", "jax-distributed", "Complete", "100%"]
    (found,) = json.loads(shoal("get", "trainjobs", "-A", "-o", "json").stdout)["items"]
    assert (found["kind"], found["status"]["conditions"][0]["type"]) == ("TrainJob", "Complete")
    assert json.loads(shoal("get", "trainjob", "two", "-o", "json").stdout) == found
    shoal.admin.request("DELETE", f"{JOBS}/two")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("logs", "trainjob/none"), "there is no trainjob none in default"),
        (("get", "trainjob", "none"), "there is no none in default"),
        (("get", "trainjob", "none", "-A"), "a name is of one namespace"),
        (("get", "nothings"), "nothings is unknown here, choose from trainjobs, runtimes"),
        (("logs", "pod/x"), "pod/x is no training run: write trainjob/NAME"),
        (("logs", "trainjob/x", "--rank=1", "--step=node-1"), "a step has no ranks"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(shoal: Shoal, arguments: tuple[str, ...], said: str) -> None:
    refused = shoal(*arguments)
    assert refused.returncode != 0
    assert said in " ".join(refused.stderr.replace("│", " ").split())
    assert "Traceback" not in refused.stderr


def test_a_step_that_is_not_there_yet_is_told_with_those_that_are(shoal: Shoal) -> None:
    train(shoal, "waiting", suspend=True, trainer={"command": ["train"]})
    refused = shoal("logs", "trainjob/waiting", "--rank=3")
    assert refused.returncode == 1
    assert refused.stderr == (
        "shoal: rank 3 of trainjob waiting is not there (no pods yet): wait for it with --follow\n"
    )
    wait_until(lambda: " Suspended " in shoal("get", "trainjobs").stdout, "it to be suspended")
    shoal.admin.request("DELETE", f"{JOBS}/waiting")


def test_a_runtime_that_was_deleted_is_installed_again(shoal: Shoal) -> None:
    shoal.admin.request("DELETE", f"{RUNTIMES}/flux-distributed")
    installed = command("runtimes", "install", "flux-distributed", f"--data-dir={shoal.data_dir}")
    assert installed.stdout == "clustertrainingruntime/flux-distributed installed\n"
    assert "flux-distributed" in shoal("get", "runtimes").stdout


def test_the_runtimes_that_come_with_it_are_listed_without_a_cluster() -> None:
    listed = command("runtimes", "list").stdout
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [
        "deepspeed-distributed",
        "flux-distributed",
        "jax-distributed",
        "mlx-distributed",
        "torch-distributed",
        "torch-distributed-with-cache",
        "torchtune-llama3.2-1b",
        "torchtune-llama3.2-3b",
        "torchtune-qwen2.5-1.5b",
        "xgboost-distributed",
    ]
    refused = command("runtimes", "install", "none")
    assert refused.returncode == 2
    assert "there is no built-in runtime 'none'" in refused.stderr
    assert "kind: ClusterTrainingRuntime" in command("runtimes", "install", "-o", "yaml").stdout
