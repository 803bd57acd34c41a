"""Gangs: how pods are marked, and what each scheduler is told. Initializers are in none."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import msgspec
import pytest

from shoal.api.meta import Document, Resource
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.api.trainer import TRAIN_JOBS
from shoal.training.framework import Seen, Wanted
from shoal.training.plugins import load_framework
from tests.training.builders import (
    UID,
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    a_trainer,
    an_initializer,
    objects_of,
    pod_of,
    template_of,
)

NODE = a_container(resources={"requests": {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": 1}})
GANG = f"pg-demo-{UID}"


def staged(gang: Any, **fields: Any) -> Any:
    """Two initializers, and three nodes that wait for them."""
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    trainer = a_trainer(NODE, dependsOn=waits, pod=fields.pop("pod", None))
    initializers = (an_initializer("dataset"), an_initializer("model"))
    return a_runtime(*initializers, trainer, ml={"numNodes": 3, "torch": {}}, gang=gang, **fields)


def wanted_groups(train_job: Any, runtime: Any) -> dict[str, Wanted]:
    wanted = load_framework().objects(train_job, runtime)
    return {one.name: one for one in wanted if one.resource.kind in ("PodGroup", "PodGang")}


class TestCoscheduling:
    def test_its_pod_group_counts_the_nodes_alone(self) -> None:
        [(name, wanted)] = wanted_groups(
            a_train_job(), staged({"coscheduling": {"scheduleTimeoutSeconds": 90}})
        ).items()
        assert name == "demo"
        assert wanted.resource.api_version == "scheduling.x-k8s.io/v1alpha1"
        assert wanted.make() == {
            "spec": {
                "minMember": 3,
                "minResources": {"cpu": "1500m", "memory": "6Gi", "nvidia.com/gpu": "3"},
                "scheduleTimeoutSeconds": 90,
            }
        }

    def test_nodes_are_marked_and_initializers_are_not(self) -> None:
        made = objects_of(a_train_job(), staged({"coscheduling": {}}))["JobSet/demo"]
        assert template_of(made)["metadata"] == {"labels": {"scheduling.x-k8s.io/pod-group": "demo"}}
        assert "metadata" not in template_of(made, "dataset-initializer")
        assert "schedulerName" not in pod_of(made)

    def test_the_timeout_has_a_default(self) -> None:
        [wanted] = wanted_groups(a_train_job(), staged({"coscheduling": {}})).values()
        assert wanted.make()["spec"]["scheduleTimeoutSeconds"] == 60


class TestVolcano:
    def test_its_pod_group(self) -> None:
        runtime = staged(
            {"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}}},
            metadata={"annotations": {"scheduling.volcano.sh/queue-name": "research"}},
            pod={"priorityClassName": "high"},
        )
        [wanted] = wanted_groups(a_train_job(), runtime).values()
        assert (wanted.name, wanted.resource.api_version) == ("demo", "scheduling.volcano.sh/v1beta1")
        assert wanted.make()["spec"] == {
            "minMember": 3,
            "minResources": {"cpu": "1500m", "memory": "6Gi", "nvidia.com/gpu": "3"},
            "queue": "research",
            "priorityClassName": "high",
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
        }

    def test_what_is_not_said_is_left_to_volcano(self) -> None:
        [wanted] = wanted_groups(a_train_job(), staged({"volcano": {}})).values()
        assert set(wanted.make()["spec"]) == {"minMember", "minResources"}

    def test_nodes_are_marked_and_initializers_are_not(self) -> None:
        made = objects_of(a_train_job(), staged({"volcano": {}}))["JobSet/demo"]
        assert template_of(made)["metadata"] == {"annotations": {"scheduling.k8s.io/group-name": "demo"}}
        assert "metadata" not in template_of(made, "model-initializer")


class TestKai:
    def test_a_queue_on_the_train_job_is_enough(self) -> None:
        job = a_train_job(labels={"kai.scheduler/queue": "team-a"})
        groups = wanted_groups(job, staged(None))
        assert list(groups) == [f"pg-demo-dataset-initializer-{UID}", f"pg-demo-model-initializer-{UID}", GANG]
        assert {one.resource for one in groups.values()} == {POD_GROUPS.documents()}
        assert [one.make()["spec"] for one in groups.values()] == [{"minMember": 1}, {"minMember": 1}, {"minMember": 3}]
        queue = {"metadata": {"labels": {"kai.scheduler/queue": "team-a"}}, "spec": {"queue": "team-a"}}
        assert [one.initial for one in groups.values()] == [queue] * 3

    def test_every_pod_names_its_scheduler_its_queue_and_its_group(self) -> None:
        made = objects_of(a_train_job(labels={"kai.scheduler/queue": "team-a"}), staged(None))["JobSet/demo"]
        for job, group in (("node", GANG), ("dataset-initializer", f"pg-demo-dataset-initializer-{UID}")):
            assert pod_of(made, job)["schedulerName"] == "kai-scheduler"
            assert template_of(made, job)["metadata"] == {
                "labels": {"kai.scheduler/queue": "team-a"},
                "annotations": {"kai.scheduler/skip-podgrouper": "true", "pod-group-name": group},
            }

    def test_the_group_says_whose_it_is(self) -> None:
        job = a_train_job(labels={"kai.scheduler/queue": "q"})
        annotations = wanted_groups(job, staged(None))[GANG].make()["metadata"]["annotations"]
        assert annotations["kai.scheduler/top-owner-metadata"] == (
            f"name: demo\nuid: {UID}\ngroup: trainer.kubeflow.org\nversion: v1alpha1\nkind: TrainJob\n"
        )

    QUEUES: dict[str, tuple[Any, Any, Any, str]] = {
        "the TrainJob's": ({"kai.scheduler/queue": "mine"}, {"kai": {"queue": "policy"}}, {}, "mine"),
        "the policy's": ({}, {"kai": {"queue": "policy"}}, {"kai.scheduler/queue": "template"}, "policy"),
        "the template's": ({}, {"kai": {}}, {"kai.scheduler/queue": "template"}, "template"),
        "the default one": ({}, {"kai": {}}, {}, "default-queue"),
    }

    @pytest.mark.parametrize(("labels", "gang", "template", "expected"), QUEUES.values(), ids=QUEUES)
    def test_the_queue(self, labels: Any, gang: Any, template: Any, expected: str) -> None:
        groups = wanted_groups(a_train_job(labels=labels), staged(gang, metadata={"labels": template}))
        assert groups[GANG].initial["spec"] == {"queue": expected}  # type: ignore[index]

    @pytest.mark.parametrize("policy", ["coscheduling", "volcano"])
    def test_a_runtime_with_another_kind_of_gang_keeps_it(self, policy: str) -> None:
        job = a_train_job(labels={"kai.scheduler/queue": "q"})
        assert list(wanted_groups(job, staged({policy: {}}))) == ["demo"]

    def test_without_a_queue_or_a_policy_there_is_no_gang(self) -> None:
        assert not wanted_groups(a_train_job(), staged(None))

    def test_a_scheduler_that_the_template_names_stays(self) -> None:
        runtime = staged({"kai": {}}, pod={"schedulerName": "kai-of-shard-2"})
        assert pod_of(objects_of(a_train_job(), runtime)["JobSet/demo"])["schedulerName"] == "kai-of-shard-2"

    def test_what_the_train_job_says_of_its_gang(self) -> None:
        labels = {
            "kai.scheduler/queue": "q",
            "kai.scheduler/node-pool": "h200",
            "priorityClassName": "build",
            "kai.scheduler/preemptibility": "non-preemptible",
        }
        wanted = wanted_groups(a_train_job(labels=labels), staged(None, pod={"priorityClassName": "train"}))[GANG]
        body = wanted.make()
        assert body["spec"] == {"minMember": 3, "priorityClassName": "build", "preemptibility": "non-preemptible"}
        assert body["metadata"]["labels"] == {"kai.scheduler/preemptibility": "non-preemptible"}
        moved = {"kai.scheduler/queue": "q", "kai.scheduler/node-pool": "h200"}
        assert wanted.initial == {"metadata": {"labels": moved}, "spec": {"queue": "q"}}

    def test_a_launcher_that_waits_for_its_workers_never_holds_them_up(self) -> None:
        launcher = a_job("launcher", ancestor="trainer", dependsOn=[{"name": "node", "status": "Ready"}])
        runtime = a_runtime(a_job("node"), launcher, ml={"mpi": {}}, gang={"kai": {}})
        job = a_train_job(trainer={"numNodes": 4})
        assert wanted_groups(job, runtime)[GANG].make()["spec"]["minMember"] == 4
        made = objects_of(job, runtime)["JobSet/demo"]
        assert template_of(made, "launcher")["metadata"]["annotations"]["pod-group-name"] == GANG


def answered(**roles: Any) -> Seen:
    """A cluster in which a controller of gangs has said what pods carry, role by role."""
    reference = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "name": "demo", "uid": UID}

    def seen(kind: Resource[Document], name: str) -> Document | None:
        fields = {role.replace("_", "-"): said for role, said in roles.items()}
        annotations = {"grove.io/pods-carry": json.dumps(fields)}
        owners = [{**reference, "controller": True}]
        metadata = {"name": name, "namespace": "team", "annotations": annotations, "ownerReferences": owners}
        return kind.decode(json.dumps({"metadata": metadata}).encode())

    return seen


class TestPodGang:
    QUEUED: ClassVar = {"kai.scheduler/queue": "team-a"}

    def test_a_queue_is_enough_where_pods_name_another_scheduler(self) -> None:
        made = objects_of(a_train_job(labels=self.QUEUED), staged(None, pod={"schedulerName": "volcano"}))
        assert [name for name in made if name.startswith("Pod")] == [
            "PodGang/demo-dataset-initializer",
            "PodGang/demo-model-initializer",
            "PodGang/demo",
        ]
        assert made["PodGang/demo"] == {
            "metadata": {"labels": {"kai.scheduler/queue": "team-a", "grove.io/scheduler-name": "volcano"}},
            "spec": {"podgroups": [{"name": "demo-node", "minReplicas": 3, "podReferences": []}]},
        }
        assert made["PodGang/demo-dataset-initializer"]["spec"]["podgroups"] == [
            {"name": "demo-dataset-initializer", "minReplicas": 1, "podReferences": []}
        ]

    @pytest.mark.parametrize("scheduler", ["", "kai-scheduler"])
    def test_kai_is_told_without_a_detour(self, scheduler: str) -> None:
        runtime = staged(None, pod={"schedulerName": scheduler} if scheduler else None)
        assert not [one for one in objects_of(a_train_job(labels=self.QUEUED), runtime) if one.startswith("PodGang")]

    def test_nothing_is_run_before_somebody_says_what_pods_carry(self) -> None:
        *groups, job_set = load_framework().objects(a_train_job(), staged({"podGang": {}}))
        assert job_set.waits_for.startswith(
            "no controller of gangs has said yet what the pods of PodGang demo-dataset-"
        )
        assert not any(one.waits_for for one in groups)

    def test_nor_before_it_is_said_for_all_of_them(self) -> None:
        seen = answered(demo_node={}, demo_dataset_initializer={})
        *_, job_set = load_framework().objects(a_train_job(), staged({"podGang": {}}), seen)
        assert "PodGang demo-model-initializer carry" in job_set.waits_for

    def test_pods_carry_what_is_said_of_their_role(self) -> None:
        node = {
            "labels": {"pod-group": "demo"},
            "annotations": {"group": "demo"},
            "spec": {"schedulerName": "acme", "schedulingGroup": {"podGroupName": "demo-node"}},
        }
        seen = answered(demo_node=node, demo_dataset_initializer={}, demo_model_initializer={})
        made = objects_of(a_train_job(labels=self.QUEUED), staged({"podGang": {}}), seen)["JobSet/demo"]
        assert template_of(made)["metadata"] == {
            "labels": {
                "kai.scheduler/queue": "team-a",
                "grove.io/podgang": "demo",
                "grove.io/podclique": "demo-node",
                "pod-group": "demo",
            },
            "annotations": {"group": "demo"},
        }
        assert pod_of(made)["schedulerName"] == "acme"
        assert pod_of(made)["schedulingGroup"] == {"podGroupName": "demo-node"}
        assert template_of(made, "dataset-initializer")["metadata"]["labels"]["grove.io/podgang"] == (
            "demo-dataset-initializer"
        )
        *_, job_set = load_framework().objects(a_train_job(), staged({"podGang": {}}), seen)
        assert not job_set.waits_for

    def test_what_a_gang_of_somebody_else_says_counts_for_nothing(self) -> None:
        job = msgspec.structs.replace(
            a_train_job(), metadata=msgspec.structs.replace(a_train_job().metadata, uid="another")
        )
        *_, job_set = load_framework().objects(job, a_runtime(gang={"podGang": {}}), answered(demo_node={}))
        assert job_set.waits_for

    SCHEDULERS: ClassVar[dict[str, tuple[Any, Any, str]]] = {
        "the template's": ({"schedulerName": "volcano"}, {"schedulerName": "koord-scheduler"}, "volcano"),
        "the policy's": ({}, {"schedulerName": "koord-scheduler"}, "koord-scheduler"),
        "whichever is the usual one": ({}, {}, ""),
    }

    @pytest.mark.parametrize(("pod", "policy", "expected"), SCHEDULERS.values(), ids=SCHEDULERS)
    def test_the_scheduler(self, pod: Any, policy: Any, expected: str) -> None:
        made = objects_of(a_train_job(), a_runtime(a_trainer(pod=pod), gang={"podGang": policy}))
        assert made["PodGang/demo"]["metadata"]["labels"]["grove.io/scheduler-name"] == expected

    def test_what_the_train_job_says_of_its_gang(self) -> None:
        job = a_train_job(labels={"priorityClassName": "build", "team": "vision", "grove.io/podgang": "x"})
        annotations = {
            "kai.scheduler/topology-required-placement": "rack",
            "kai.scheduler/topology-preferred-placement": "host",
        }
        job = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, annotations=annotations))
        made = objects_of(job, a_runtime(gang={"podGang": {"queue": "policy"}}))["PodGang/demo"]
        assert made["spec"]["priorityClassName"] == "build"
        assert made["spec"]["topologyConstraint"] == {"packConstraint": {"required": "rack", "preferred": "host"}}
        assert made["metadata"]["annotations"] == annotations
        assert made["metadata"]["labels"] == {
            "priorityClassName": "build",
            "team": "vision",
            "kai.scheduler/queue": "policy",
            "grove.io/scheduler-name": "",
        }

    def test_a_launcher_that_waits_for_its_workers_never_holds_them_up(self) -> None:
        launcher = a_job("launcher", ancestor="trainer", dependsOn=[{"name": "node", "status": "Ready"}])
        runtime = a_runtime(a_job("node"), launcher, ml={"mpi": {}}, gang={"podGang": {}})
        made = objects_of(a_train_job(trainer={"numNodes": 4}), runtime)["PodGang/demo"]
        assert [(one["name"], one["minReplicas"]) for one in made["spec"]["podgroups"]] == [
            ("demo-node", 4),
            ("demo-launcher", 0),
        ]


@pytest.mark.parametrize("policy", ["coscheduling", "volcano", "kai", "podGang"])
@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "running"])
def test_a_group_that_is_there_is_written_only_while_the_train_job_is_suspended(policy: str, suspend: bool) -> None:
    groups = wanted_groups(a_train_job(suspend=suspend), staged({policy: {}}))
    assert {one.is_kept(None) for one in groups.values()} == {not suspend}  # type: ignore[arg-type]
