"""bench/training.py: what it measures is what it says, at sizes that take seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.figures.comparison import Comparison
from bench.trainjobs import registering, upstream
from bench.trainjobs.course import Course, is_write, of_training
from bench.trainjobs.results import KUBE, PARTS, SHIPPED, UPSTREAM, Plan, comparisons, notes

ROOT = Path(__file__).resolve().parent.parent.parent
SERVED = {
    "POST trainjobs": 10,
    "APPLY jobsets": 10,
    "PATCH jobsets/status": 20,
    "POST jobs": 10,
    "POST jobs 409": 5,
    "PUT jobs/status": 30,
    "GET configmaps 404": 10,
    "POST pods": 20,
    "POST events": 60,
    "GET ": 3,
}


@pytest.mark.slow
def test_train_jobs_are_followed_from_their_request_to_their_end() -> None:
    line = [
        sys.executable,
        "bench/training.py",
        "--quick",
        "--only=embedded",
        "--no-peers",
        "--train-jobs=3",
        "-o",
        "json",
    ]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    (course,) = found["embedded"]
    assert 0 < course["posted"] < course["complete"]
    assert 0 < course["created"] < course["complete"]
    assert (course["served"]["CREATE trainjobs"], course["served"]["CREATE pods"]) == (3, 6)
    assert found["not run"] == dict.fromkeys(PARTS[1:], "not asked for")


def test_requests_are_counted_of_those_who_look_after_train_jobs_and_not_of_the_bench() -> None:
    course = Course(train_jobs=10, operators=[], served=SERVED)
    assert (course.writes, course.reads) == (4.5, 1.0)
    assert "PUT jobs/status" not in of_training(SERVED)  # the Job controller's


@pytest.mark.parametrize(
    ("what", "wanted"),
    [("APPLY jobsets", True), ("CREATE pods", True), ("GET configmaps 404", False), ("LIST ", False)],
)
def test_a_write_is_known_by_its_verb(what: str, wanted: bool) -> None:
    assert is_write(what) == wanted


def test_all_webhooks_of_upstream_are_registered_by_address() -> None:
    found = registering.configurations({upstream.TRAINER: 1111, upstream.JOB_SET: 2222}, b"authority")
    urls = {each["name"]: each["clientConfig"]["url"] for body in found for each in body["webhooks"]}
    assert urls == {
        "defaulter.trainjob.trainer.kubeflow.org": (
            "https://127.0.0.1:1111/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
        ),
        "validator.clustertrainingruntime.trainer.kubeflow.org": (
            "https://127.0.0.1:1111/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
        ),
        "validator.trainingruntime.trainer.kubeflow.org": (
            "https://127.0.0.1:1111/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
        ),
        "validator.trainjob.trainer.kubeflow.org": (
            "https://127.0.0.1:1111/validate-trainer-kubeflow-org-v1alpha1-trainjob"
        ),
        "mjobset.kb.io": "https://127.0.0.1:2222/mutate-jobset-x-k8s-io-v1alpha2-jobset",
        "vjobset.kb.io": "https://127.0.0.1:2222/validate-jobset-x-k8s-io-v1alpha2-jobset",
        "mpod.kb.io": "https://127.0.0.1:2222/mutate--v1-pod",
        "vpod.kb.io": "https://127.0.0.1:2222/validate--v1-pod",
    }


def test_the_modules_of_the_peer_are_pinned() -> None:
    pins = (ROOT / "bench/peers/training/go.mod").read_text()
    assert "github.com/kubeflow/trainer/v2 v2.3.0" in pins
    assert "sigs.k8s.io/jobset v0.12.0" in pins
    assert upstream.TOOL.version == "v2.3.0"


def test_upstream_is_left_out_with_a_line_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\n[ "$1" = version ] && echo go version go1.26.0 linux/amd64 && exit 0\nexit 1\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(upstream.NotBuilt, match="upstream was not built"):
        upstream.binaries(lambda said: None)


def test_ours_is_judged_by_upstream_without_its_limits_on_the_same_server() -> None:
    runs = {
        KUBE: [_course(created=30.0)],
        UPSTREAM: [_course(created=20.0)],
        SHIPPED: [_course(created=60.0)],
    }
    judged, shipped = _of("all pods created", comparisons(runs, {}, Plan()))
    assert (judged.peer_name, judged.verdict) == ("upstream", "MISSED")
    assert shipped.ratio is not None
    assert (shipped.ratio.median, shipped.verdict) == (0.5, "")
    assert any(line.startswith("kube, writes of everyone") for line in notes(runs))


def test_where_upstream_was_not_run_nothing_is_judged() -> None:
    lines = _of("all pods created", comparisons({KUBE: [_course(created=30.0)]}, {UPSTREAM: "no Go"}, Plan()))
    assert [(line.verdict, line.not_run) for line in lines] == [("not run", "no Go")]


def _course(*, created: float) -> Course:
    return Course(
        train_jobs=10,
        operators=["operator"],
        posted=1.0,
        created=created,
        complete=created + 1,
        cpu={"operator": 1.0},
        cpu_at_rest={"operator": 1.0, "etcd": 2.0},
        memory={"operator": 1_000_000},
        served=SERVED,
    )


def _of(what: str, sections: dict[str, list[Comparison]]) -> list[Comparison]:
    """A line, and those that go on about it."""
    lines = next(iter(sections.values()))
    start = next(place for place, line in enumerate(lines) if line.what == what)
    rest = [line for line in lines[start + 1 : start + 2] if line.what == "… the same"]
    return [lines[start], *rest]
