"""Snapshots: what is written, what is left out, and that what is read is what was there."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace

import msgspec
import pytest

from shoal.api.core.pods import Pod
from shoal.scheduler.configuration import Configuration, SchedulerOptions, configuration_of
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.snapshots import (
    InvalidSnapshot,
    configuration_document,
    mirror_of,
    packed,
    parameters_of,
    read_snapshot,
    setup_of,
)
from shoal.scheduler.snapshots.modelling import mirror_settings
from shoal.scheduler.snapshots.parameters import options_of_parameters
from shoal.scheduler.snapshots.writing import document_of
from shoal.scheduler.watching.mirror import Mirror
from tests.scheduler.snapshots.documents import (
    AT,
    Json,
    a_busy_cluster,
    a_document,
    a_group_object,
    a_node_object,
    a_pod_object,
    a_queue_object,
    a_snapshot,
)


def test_what_is_written_is_read_again() -> None:
    document = a_document(a_busy_cluster())
    snapshot = read_snapshot(packed(document))
    assert snapshot.taken_at == AT
    assert {name: len(found) for name, found in snapshot.objects.items() if found} == {
        "nodes": 2,
        "queues": 2,
        "priorityClasses": 2,
        "podGroups": 3,
        "pods": 4,
    }
    assert (snapshot.config, snapshot.parameters) == (document["config"], document["schedulerParams"])


def test_the_archive_holds_one_file_of_the_name_that_others_look_for() -> None:
    with zipfile.ZipFile(io.BytesIO(packed(a_document({})))) as archive:
        assert archive.namelist() == ["snapshot.json"]
        assert sorted(json.loads(archive.read("snapshot.json"))) == [
            "config",
            "rawObjects",
            "schedulerParams",
            "takenAt",
        ]


def test_the_same_snapshot_gives_the_same_bytes() -> None:
    assert packed(a_document(a_busy_cluster())) == packed(a_document(a_busy_cluster()))


def test_nothing_is_written_that_people_keep_secret() -> None:
    pod = a_pod_object("secretive")
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(pod)
    pod["metadata"]["managedFields"] = [{"manager": "s3cret"}]
    settings = {"metadata": {"name": "settings"}, "data": {"password": "s3cret"}}
    written = json.dumps(a_document({"pods": [pod], "configMaps": [settings]}))
    assert "s3cret" not in written
    assert "secretive-0" in written
    assert '"nvidia.com/gpu": "8"' in written


def test_typed_objects_are_written_with_their_kind() -> None:
    pod = msgspec.convert(a_pod_object("typed"), Pod)
    bare = msgspec.structs.replace(pod, api_version="", kind="")
    written = document_of(bare, "v1", "Pod")
    assert (written["apiVersion"], written["kind"]) == ("v1", "Pod")
    assert written["metadata"]["creationTimestamp"] == "2027-01-15T07:00:00Z"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"no archive", "is neither an archive", id="something else"),
        pytest.param(b'{"pods": []}', "has no rawObjects", id="another document"),
        pytest.param(b"[]", "has no rawObjects", id="a list"),
    ],
)
def test_what_is_no_snapshot_is_told_so(data: bytes, said: str) -> None:
    with pytest.raises(InvalidSnapshot, match=said):
        read_snapshot(data)


def test_an_archive_of_something_else_is_told_so() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(InvalidSnapshot, match=r"has no snapshot\.json"):
        read_snapshot(written.getvalue())


KAI_S = {
    "config": {"actions": "allocate, reclaim", "tiers": [{"plugins": [{"name": "predicates"}]}]},
    "schedulerParams": {
        "schedulerName": "runai-scheduler",
        "partitionParams": {"NodePoolLabelKey": "pool", "NodePoolLabelValue": ""},
        "maxNumberConsolidationPreemptees": 16,
        "useSchedulingSignatures": True,
        "globalDefaultStalenessGracePeriod": 90_000_000_000,
    },
    "rawObjects": {
        "pods": [a_pod_object("small")],
        "nodes": [a_node_object("n1") | {"spec": None}],
        "queues": [a_queue_object("team-a")],
        "podGroups": None,
        "unheardOf": [{"kind": "Future"}],
    },
}
"""As KAI writes it: null for what is empty, false left out, no time."""


def test_one_of_kai_is_understood() -> None:
    snapshot = read_snapshot(json.dumps(KAI_S).encode())
    setup, options = setup_of(snapshot)
    assert setup.actions == ("allocate", "reclaim")
    assert setup.settings.plugins == ("predicates",)
    assert (setup.settings.staleness_grace, setup.settings.full_hierarchy) == (90.0, False)
    assert (options.scheduler_names, options.node_pool_label_key) == (("runai-scheduler",), "pool")
    assert snapshot.of("podGroups") == []
    # The latest that anything in it speaks of.
    assert snapshot.taken_at == AT - 3600
    mirror = mirror_of(snapshot, mirror_settings(options, setup), now=AT)
    assert [node.name for node in mirror.cluster.nodes.nodes] == ["n1"]


def test_flags_and_configuration_survive() -> None:
    options = replace(
        SchedulerOptions(),
        scheduler_names=("one", "two"),
        partition_label_value="blue",
        default_staleness_grace_period=5.5,
        full_hierarchy_fairness=False,
        reserve_for_large_gangs=True,
        gangs_only=("default-scheduler",),
    )
    assert options_of_parameters(json.loads(json.dumps(parameters_of(options)))) == options
    configuration = replace(Configuration(), actions=("allocate",), queue_depths={"allocate": 5}, source="here")
    assert configuration_of(configuration_document(configuration), source="here") == configuration


def test_a_snapshot_becomes_the_model_that_it_was_taken_of() -> None:
    snapshot = a_snapshot(**a_busy_cluster())
    setup, options = setup_of(snapshot)
    cluster = mirror_of(snapshot, mirror_settings(options, setup), now=AT).cluster
    assert sorted(cluster.jobs) == [("default", "gang"), ("default", "runs"), ("default", "small")]
    runs = cluster.jobs["default", "runs"]
    assert (runs.priority, runs.is_preemptible, runs.queue) == (100, False, "team-b")
    assert [(task.status, task.node) for task in runs.tasks.values()] == [(Status.RUNNING, "n1")]
    assert cluster.jobs["default", "gang"].root.all_pod_sets().__next__().min_member == 2


def test_an_object_that_does_not_decode_keeps_no_other_out() -> None:
    sections = a_busy_cluster()
    sections["queues"].append({"metadata": {"name": "odd"}, "spec": {"priority": "many"}})
    snapshot = a_snapshot(**sections)
    setup, options = setup_of(snapshot)
    assert sorted(mirror_of(snapshot, mirror_settings(options, setup), now=AT).cluster.queues) == ["team-a", "team-b"]


HOST = "kubernetes.io/hostname"


def with_needs(**sections: list[Json]) -> Mirror:
    """The model of a snapshot of a pod that needs a ConfigMap and a volume."""
    pod = a_pod_object("small")
    pod["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "settings", "mountPath": "/s"}]
    snapshot = a_snapshot(
        nodes=[a_node_object("n1"), a_node_object("n2")],
        queues=[a_queue_object("team-a")],
        podGroups=[a_group_object("small")],
        pods=[pod],
        **sections,
    )
    setup, options = setup_of(snapshot)
    return mirror_of(snapshot, mirror_settings(options, setup), now=AT)


def test_what_pods_need_is_in_it_and_counts_when_it_is_replayed() -> None:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n2"]}]}
    mirror = with_needs(
        configMaps=[{"metadata": {"name": "settings", "namespace": "default"}, "data": {"a": "b"}}],
        persistentVolumeClaims=[
            {
                "metadata": {"name": "data", "namespace": "default"},
                "spec": {"volumeName": "pv"},
                "status": {"phase": "Bound"},
            }
        ],
        persistentVolumes=[
            {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}
        ],
    )
    [task] = mirror.cluster.jobs["default", "small"].tasks.values()
    assert (task.constraints.missing, task.constraints.allowed_nodes) == ("", frozenset({"n2"}))


def test_what_is_missing_in_it_is_missing_when_it_is_replayed() -> None:
    [task] = with_needs().cluster.jobs["default", "small"].tasks.values()
    assert task.constraints.missing.startswith("ConfigMap settings does not exist; claim data does not exist")


def test_of_what_it_has_no_section_for_nothing_is_missing() -> None:
    pod = a_pod_object("small")
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    pod["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": "gpus"}]
    sections = {
        "nodes": [a_node_object("n1")],
        "queues": [a_queue_object("team-a")],
        "podGroups": [a_group_object("small")],
        "pods": [pod],
    }
    snapshot = read_snapshot(json.dumps({"rawObjects": sections}).encode())
    setup, options = setup_of(snapshot)
    mirror = mirror_of(snapshot, mirror_settings(options, setup), now=AT)
    [task] = mirror.cluster.jobs["default", "small"].tasks.values()
    assert (task.constraints.missing, task.constraints.allowed_nodes) == ("", None)
