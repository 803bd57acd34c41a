"""Training programs that tell from their pods how far they are, to the server that `shoal up` has for that."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.local_node.conftest import LocalNode, a_local_node
from tests.e2e.training.conftest import TRAINER, condition, is_there, part, use_images
from tests.support.clusters.real import namespace_for
from tests.support.programs.training_programs import Part
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(600)]

GUIDE = Path(__file__).parents[3] / "docs" / "training.md"
WITHIN = 120.0
WHEN = "2026-01-31T09:30:00Z"
HALF_WAY: dict[str, Any] = {
    "progressPercentage": 42,
    "estimatedRemainingSeconds": 90,
    "metrics": [{"name": "loss", "value": "0.25"}, {"name": "accuracy", "value": "0.9"}],
    "lastUpdatedTime": WHEN,
}
PROGRAM = """
import json, os, ssl, sys, time, urllib.error, urllib.request

bodies, whose, stays = json.loads(sys.argv[1])
url, authority, token = (os.environ[f"KUBEFLOW_TRAINER_SERVER_{name}"] for name in ("URL", "CA_CERT", "TOKEN"))
if whose:
    url = f"{url.rpartition('/trainjobs/')[0]}/trainjobs/{whose}/status"
with open(token) as file:
    headers = {"Authorization": f"Bearer {file.read()}"}
for body in bodies:
    try:
        request = urllib.request.Request(url, body.encode(), headers)
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=authority)) as answer:
            print(json.dumps([answer.status, json.load(answer)]), flush=True)
    except urllib.error.HTTPError as error:
        print(json.dumps([error.code, json.load(error)]), flush=True)
if stays:
    time.sleep(1000)
"""
Answer = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Training:
    """A namespace of a running Shoal, in which programs train on this machine."""

    node: LocalNode
    namespace: str

    def begin(self, name: str, *command: str, image: str = "python", **spec: Any) -> None:
        """A run of one node with a command; the image is this machine's own Python where none is named."""
        trainer = {"numNodes": 1, "image": image, "command": list(command)}
        self.node.kubectl.apply(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": name},
                "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, **spec},
            },
            namespace=self.namespace,
        )

    def report(self, name: str, *bodies: str, of: str = "", stays: bool = False) -> None:
        """A run whose program sends these reports, of itself or of another one, and then ends or goes on."""
        self.begin(name, "python", "-c", PROGRAM, json.dumps([bodies, of, stays]))

    def status(self, name: str) -> dict[str, Any]:
        """How a run is, as kubectl says."""
        found: dict[str, Any] = self.node.kubectl.json("get", "trainjob", name, namespace=self.namespace)["status"]
        return found

    def job(self, name: str) -> dict[str, Any]:
        path = f"{TRAINER}/namespaces/{self.namespace}/trainjobs/{name}"
        found: dict[str, Any] = self.node.shoal.admin.request("GET", path)
        return found

    def completes(self, name: str) -> list[str]:
        """What a run printed, once it is complete."""
        wait_until(lambda: self.job(name).get("status", {}).get("completionTime"), f"{name} to end", within=WITHIN)
        said = self.shoal("logs", f"trainjob/{name}", "--rank=0")
        assert condition(self.job(name), "Complete"), said
        return said.splitlines()

    def answers(self, name: str) -> list[Answer]:
        """What a program was answered, report by report."""
        return [(code, body) for code, body in map(json.loads, self.completes(name))]

    def shoal(self, command: str, *arguments: str) -> str:
        done = self.node.shoal(command, *arguments, f"--namespace={self.namespace}")
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def node() -> Iterator[LocalNode]:
    with a_local_node("user") as node:
        use_images(node, *([Part.PYTHON] if is_there(Part.PYTHON) else []))
        yield node


@pytest.fixture
def training(node: LocalNode, request: pytest.FixtureRequest) -> Iterator[Training]:
    with namespace_for(request.node.originalname, node.shoal.admin) as namespace:
        yield Training(node, namespace)


def a_report(**status: Any) -> str:
    return json.dumps({"trainerStatus": status})


def test_what_a_program_reports_is_seen_while_it_trains(training: Training) -> None:
    training.report("half-way", a_report(**HALF_WAY), stays=True)
    wait_until(
        lambda: "trainerStatus" in training.job("half-way").get("status", {}), "a report to be written", within=WITHIN
    )
    assert training.status("half-way")["trainerStatus"] == HALF_WAY
    row = r"^half-way +torch-distributed +Running +42%, 90s left +loss=0\.25 accuracy=0\.9 +\d+[sm]$"
    wait_until(lambda: re.search(row, training.shoal("get", "trainjobs"), re.MULTILINE), f"a row like {row}")


def test_the_last_report_is_there_when_the_run_is_over(training: Training) -> None:
    later = {"progressPercentage": 100, "metrics": [{"name": "loss", "value": "0.01"}], "lastUpdatedTime": WHEN}
    training.report("done", a_report(**HALF_WAY), a_report(**later))
    assert training.answers("done") == [(200, {"trainerStatus": HALF_WAY}), (200, {"trainerStatus": later})]
    assert training.status("done")["trainerStatus"] == later
    row = r"^done +torch-distributed +Complete +100% +loss=0\.01 +\d+[sm]$"
    assert re.search(row, training.shoal("get", "trainjobs"), re.MULTILINE)


def test_the_command_of_the_guide_reports(training: Training) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the guide's command is curl, which is not on this machine: apt-get install curl")
    found = re.search(r"^\$ (curl (?:.*\\\n)*.*)$", GUIDE.read_text(), re.MULTILINE)
    assert found is not None, "the guide shows no report by curl"
    training.begin("guided", "sh", "-euc", found[1].replace("curl", "curl --silent --show-error --fail", 1))
    said = training.completes("guided")
    reported = json.loads("".join(said))["trainerStatus"]
    assert reported["progressPercentage"] > 0
    assert training.status("guided")["trainerStatus"] == reported


def test_the_token_of_one_run_is_good_for_no_other(training: Training) -> None:
    training.begin("mine", "true", suspend=True)
    training.report("stranger", a_report(**HALF_WAY), of="mine")
    [(code, answer)] = training.answers("stranger")
    assert (code, answer["reason"], answer["message"]) == (403, "Forbidden", "Forbidden")
    assert condition(training.job("mine"), "Suspended")
    assert "trainerStatus" not in training.status("mine")


BAD = {
    "more than all": (
        a_report(progressPercentage=101, lastUpdatedTime=WHEN),
        "status.trainerStatus.progressPercentage: Invalid value: 101: ",
    ),
    "a part of a percent": (
        a_report(progressPercentage=0.42, lastUpdatedTime=WHEN),
        "trainerStatus.progressPercentage: Expected `int`, got `float`",
    ),
    "a rest below nothing": (
        a_report(estimatedRemainingSeconds=-1, lastUpdatedTime=WHEN),
        "status.trainerStatus.estimatedRemainingSeconds: Invalid value: -1: ",
    ),
    "a time that is none": (
        a_report(progressPercentage=42, lastUpdatedTime="just now"),
        'status.trainerStatus.lastUpdatedTime: Invalid value: "just now": ',
    ),
    "no time": (
        a_report(progressPercentage=42),
        "lastUpdatedTime is required when trainerStatus is present",
    ),
    "a figure that is no text": (
        a_report(metrics=[{"name": "loss", "value": 0.25}], lastUpdatedTime=WHEN),
        "trainerStatus.metrics[0].value: Expected `str`, got `float`",
    ),
    "a field that is none": (
        a_report(progress=42, lastUpdatedTime=WHEN),
        "trainerStatus.progress: there is no such field",
    ),
    "no JSON": ('{"trainerStatus": {"progressPercentage": 42', "Invalid payload: Input data was truncated"),
}


@pytest.fixture(scope="module")
def refusals(node: LocalNode) -> Iterator[dict[str, Answer]]:
    """What a program is answered that reports well once, and then badly in every way."""
    with namespace_for("bad reports", node.shoal.admin) as namespace:
        training = Training(node, namespace)
        training.report("careless", a_report(**HALF_WAY), *(body for body, _ in BAD.values()))
        first, *others = training.answers("careless")
        assert first == (200, {"trainerStatus": HALF_WAY})
        assert training.status("careless")["trainerStatus"] == HALF_WAY, "a bad report was written"
        yield dict(zip(BAD, others, strict=True))


@pytest.mark.parametrize("case", BAD)
def test_a_bad_report_is_refused_with_what_is_wrong(refusals: dict[str, Answer], case: str) -> None:
    code, answer = refusals[case]
    assert (code, answer["kind"], answer["status"], answer["reason"]) == (422, "Status", "Failure", "Invalid")
    assert BAD[case][1] in answer["message"]


def test_the_sdk_reports_by_its_own_function(training: Training) -> None:
    part(Part.PYTHON)
    program = """if True:
        from kubeflow.trainer import update_trainjob_status

        told = update_trainjob_status(
            progress_percent=75, estimated_remaining_seconds=30, metrics={"loss": 0.125, "epoch": 3}
        )
        print("taken" if told else "not taken", flush=True)
    """
    training.begin("sdk", "python", "-c", program, image="nvcr.io/nvidia/jax")
    assert training.completes("sdk") == ["taken"]
    reported = training.status("sdk")["trainerStatus"]
    assert reported.pop("lastUpdatedTime") > WHEN
    assert reported == {
        "progressPercentage": 75,
        "estimatedRemainingSeconds": 30,
        "metrics": [{"name": "loss", "value": "0.125"}, {"name": "epoch", "value": "3"}],
    }


def test_the_demo_shows_progress(node: LocalNode) -> None:
    made = node.shoal("demo")
    assert made.returncode == 0, made.stderr
    try:
        row = r"^fit +torch-distributed +Running +\d+%, \w+ left +loss=\d+\.\d+ +\d+[sm]$"

        def said() -> str:
            return node.shoal("get", "trainjobs", "--namespace=demo-research").stdout

        wait_until(lambda: re.search(row, said(), re.MULTILINE), f"a row like {row}", within=WITHIN)
    finally:
        removed = node.shoal("demo", "--remove")
    assert removed.returncode == 0, removed.stderr
