"""Upstream's own sample manifests: which group their pods get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from shoal.scheduler.grouper.case import Facts
from shoal.scheduler.grouper.fields import Json
from shoal.scheduler.grouper.pods import GroupedPod, is_grouped_elsewhere, wants_no_group
from tests.scheduler.grouper.builders import CLASSES, parts_of, the_group
from tests.support.schemas.corpus import needs_corpus, upstream_samples

PRIORITIES = Facts(priority_classes=CLASSES)

EXPECTED: dict[str, tuple[int, str, str, dict[str, str]]] = {
    "Job/batch-job-min-member": (2, "default-queue", "train", {}),
    "PyTorchJob/pytorch-dist-mnist-nccl": (3, "default-queue", "train", {"master": "1 pods", "worker": "2 pods"}),
    "PyTorchJob/elastic-example-imagenet": (1, "default-queue", "train", {"worker": "1 pods"}),
    "RayJob/rayjob-sample": (2, "default-queue", "train", {"headgroup": "1 pods", "gpu-workers": "1 pods"}),
    "Pod/gpu-sharing-init-container": (1, "default-queue", "train", {}),
    "Pod/gpu-sharing": (1, "default-queue", "train", {}),
    "Pod/gpu-pod": (1, "default-queue", "train", {}),
    "Pod/cpu-only-pod": (1, "default-queue", "train", {}),
    "Pod/delayed-preemptor": (1, "delay-queue", "build-preemptible", {}),
    "Pod/stale-gang-ann-pod-0": (1, "default-queue", "train", {}),
    "Pod/team-a-training-job": (1, "team-a", "train", {}),
    "Pod/team-b-training-job": (1, "team-b", "train", {}),
    "Pod/demo-running-job": (1, "default-queue", "train", {}),
    "Pod/demo-completed-job": (1, "default-queue", "train", {}),
    "Pod/demo-pending-job": (1, "default-queue", "train", {}),
}
"""Minimum, queue, priority and parts by kind and name."""

SKIPPED = {"Job/external-batch-job"}
"""Samples that bring a PodGroup of their own."""


def pods_made_by(sample: Json) -> Iterator[GroupedPod]:
    """A pod of each template that a manifest holds, as its controller would make it; the pod itself of a Pod."""
    if sample["kind"] == "Pod":
        metadata = {"namespace": "default", **sample["metadata"], "uid": "u"}
        yield msgspec.convert({"metadata": metadata, "spec": sample["spec"]}, GroupedPod)
        return
    owner = {"apiVersion": sample["apiVersion"], "kind": sample["kind"], "name": sample["metadata"]["name"], "uid": "u"}
    for template in _templates(sample.get("spec")):
        metadata = {"name": "p", "namespace": "default", "uid": "p", **template.get("metadata", {})}
        yield msgspec.convert(
            {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": template["spec"]}, GroupedPod
        )


def _templates(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        template = value.get("template")
        if isinstance(template, dict) and "containers" in template.get("spec", {}):
            yield template
        for inner in value.values():
            yield from _templates(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _templates(inner)


def samples() -> dict[str, Json]:
    """The manifests whose pods ask for KAI, by kind and name."""
    return {
        f"{sample['kind']}/{sample['metadata']['name']}": sample
        for _, sample in upstream_samples("kai")
        if sample["kind"] in ("Pod", "Job", "Deployment", "PyTorchJob", "RayJob")
        and any(pod.spec.scheduler_name == "kai-scheduler" for pod in pods_made_by(sample))
    }


@needs_corpus
def test_every_sample_that_makes_pods_is_here() -> None:
    assert set(samples()) == {*EXPECTED, *SKIPPED}


@needs_corpus
@pytest.mark.parametrize("name", EXPECTED)
def test_the_pods_of_a_sample_are_grouped(name: str) -> None:
    sample = samples()[name]
    owner = {**sample, "metadata": {"namespace": "default", **sample["metadata"], "uid": "u"}}
    owners = () if sample["kind"] == "Pod" else (owner,)
    for pod in pods_made_by(sample):
        group = the_group(*owners, pod=pod, facts=PRIORITIES)
        assert group.name == f"pg-{sample['metadata']['name']}-u"
        assert not is_grouped_elsewhere(pod)
        assert (group.min_member, group.queue, group.priority_class, parts_of(group)) == EXPECTED[name]


@needs_corpus
def test_what_samples_say_of_time_is_in_their_groups() -> None:
    found = samples()
    (delayed,), (stale,) = pods_made_by(found["Pod/delayed-preemptor"]), pods_made_by(found["Pod/stale-gang-ann-pod-0"])
    assert the_group(pod=delayed).preemption_delay == "2m0s"
    assert the_group(pod=stale).staleness_grace_period == "5s"


@needs_corpus
@pytest.mark.parametrize("name", sorted(SKIPPED))
def test_a_sample_with_a_group_of_its_own_is_left_alone(name: str) -> None:
    assert wants_no_group(samples()[name]["metadata"]["annotations"])
