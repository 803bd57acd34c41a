"""Pods that name the Workload they belong to, as in Kubernetes 1.35, which no server of the recorded sort knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.api.core import PODS
from shoal.api.scheduling_k8s_io import WORKLOADS_V1ALPHA1
from shoal.cluster.apiserver.kinds.protobuf import PREFIX, read_protobuf
from shoal.cluster.apiserver.kinds.tables import body_schema
from shoal.kube import Invalid
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.in_process import Cluster, in_process_cluster

REFERENCE = {"name": "train.v1", "podGroup": "workers", "podGroupReplicaKey": "r0"}
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with in_process_cluster(tmp_path) as cluster:
        yield cluster


async def test_a_pod_keeps_its_workload_which_need_not_be_there(cluster: Cluster) -> None:
    made = await cluster.make(PODS, pod_manifest("p", workloadRef=REFERENCE))
    assert made.content["spec"]["workloadRef"] == REFERENCE


@pytest.mark.parametrize(
    ("reference", "fields", "words"),
    [
        pytest.param({"name": "A_b", "podGroup": "a"}, ["name"], SUBDOMAIN, id="the name is no subdomain"),
        pytest.param({"podGroup": "a"}, ["name"], SUBDOMAIN, id="no name"),
        pytest.param({"name": "a", "podGroup": "A_b"}, ["podGroup"], LABEL, id="the group is no label"),
        pytest.param({"name": "a"}, ["podGroup"], LABEL, id="no group"),
        pytest.param(
            {"name": "a", "podGroup": "a", "podGroupReplicaKey": "-"},
            ["podGroupReplicaKey"],
            LABEL,
            id="the key is none",
        ),
        pytest.param({"name": "-", "podGroup": "-"}, ["name", "podGroup"], "RFC 1123", id="both"),
    ],
)
async def test_a_reference_that_could_name_nothing_is_refused(
    cluster: Cluster, reference: dict[str, str], fields: list[str], words: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await cluster.make(PODS, pod_manifest("p", workloadRef=reference))
    assert [cause.field for cause in refused.value.causes] == [f"spec.workloadRef.{field}" for field in fields]
    assert all(words in cause.message for cause in refused.value.causes)


@pytest.mark.parametrize(
    "gates", [pytest.param([], id="free"), pytest.param([{"name": "example.com/wait"}], id="gated")]
)
@pytest.mark.parametrize(
    "change", [pytest.param({"podGroup": "others"}, id="changed"), pytest.param(None, id="taken away")]
)
async def test_a_pod_stays_with_its_workload(
    cluster: Cluster, gates: list[dict[str, str]], change: dict[str, str] | None
) -> None:
    await cluster.make(PODS, pod_manifest("p", workloadRef=REFERENCE, schedulingGates=gates))
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        await cluster.client.merge_patch(PODS, "p", {"spec": {"workloadRef": change}}, "default")


async def test_a_workload_is_kept_and_its_groups_stay(cluster: Cluster) -> None:
    groups = [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]
    made = await cluster.make(WORKLOADS_V1ALPHA1, {"metadata": {"name": "w"}, "spec": {"podGroups": groups}})
    assert made.content["spec"] == {"podGroups": groups}
    changed = {"spec": {"podGroups": [{"name": "workers", "policy": {"basic": {}}}]}}
    with pytest.raises(Invalid, match="field is immutable"):
        await cluster.client.merge_patch(WORKLOADS_V1ALPHA1, "w", changed, "default")


def test_clients_of_1_35_send_the_reference_as_field_42() -> None:
    def field(number: int, content: bytes) -> bytes:
        tag = number << 3 | 2
        return bytes([tag & 0x7F | 0x80, tag >> 7] if tag > 0x7F else [tag]) + bytes([len(content)]) + content

    reference = field(1, b"w") + field(2, b"g") + field(3, b"k")
    pod = field(2, field(42, reference))
    read = read_protobuf(PREFIX + field(2, pod), lambda _version, _kind: body_schema("v1", "Pod"))
    assert read["spec"]["workloadRef"] == {"name": "w", "podGroup": "g", "podGroupReplicaKey": "k"}
