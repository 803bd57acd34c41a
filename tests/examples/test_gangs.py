"""The examples of gangs: admitted as they are, running on simulated nodes, and told to the scheduler that they name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.gangs.configuration import read_configuration
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "gangs"
DOCUMENT = (ROOT / "docs" / "gangs.md").read_text()
GROVE = "/apis/grove.io/v1alpha1"
PATHS = {
    "PodCliqueSet": f"{GROVE}/namespaces/default/podcliquesets",
    "ClusterTopologyBinding": f"{GROVE}/clustertopologybindings",
    "Queue": "/apis/scheduling.run.ai/v2/queues",
}
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
TOPOLOGY = "topology.kubernetes.io"
MERGE_PATCH = "application/merge-patch+json"
GANGS = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs"


@pytest.fixture(scope="module")
def shoal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """What the document starts, without this machine as a node, in two racks."""
    shoal = Shoal(tmp_path_factory.mktemp("shoal") / "data", "--sim=4x8:H100")
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        for number in range(4):
            labels = {f"{TOPOLOGY}/block": "b1", f"{TOPOLOGY}/rack": f"r{number // 2}"}
            shoal.admin.request(
                "PATCH", f"{NODES}/sim-0-{number}", {"metadata": {"labels": labels}}, content_type=MERGE_PATCH
            )
        yield shoal
        shoal("down")


@pytest.fixture
def running(shoal: Shoal, request: pytest.FixtureRequest) -> Iterator[Shoal]:
    """A Shoal in which all sets of an example are available; afterwards nothing of them is left."""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all((EXAMPLES / request.param).read_text()))
    places = [PATHS[document["kind"]] for document in documents]
    for place, document in zip(places, documents, strict=True):
        shoal.admin.request("POST", place, document)

    def are_available() -> bool:
        sets = shoal.objects(PATHS["PodCliqueSet"])
        return all(one.get("status", {}).get("availableReplicas") == one["spec"]["replicas"] for one in sets)

    wait_until(are_available, f"{request.param} to be available")
    yield shoal
    for place, document in reversed(list(zip(places, documents, strict=True))):
        shoal.admin.request("DELETE", f"{place}/{document['metadata']['name']}")
    wait_until(lambda: not shoal.objects(PODS) and not shoal.objects(GANGS), "all of it to be gone")


def names(objects: list[dict[str, Any]]) -> set[str]:
    return {one["metadata"]["name"] for one in objects}


def condition(found: dict[str, Any], name: str) -> str:
    return next((one["status"] for one in found["status"]["conditions"] if one["type"] == name), "")


def test_no_example_is_left_out() -> None:
    tested = {"simple.yaml", "inference.yaml", "topology.yaml"}
    assert {path.name for path in EXAMPLES.glob("*.yaml")} == tested
    assert {path.stem for path in EXAMPLES.glob("*/*.yaml")} == {"default", "kai", "koordinator", "volcano"}


@pytest.mark.parametrize("running", ["simple.yaml"], indirect=True)
def test_the_simple_one_starts_its_leader_first(running: Shoal) -> None:
    pods = {pod["metadata"]["labels"]["grove.io/podclique"]: pod for pod in running.objects(PODS)}
    assert sorted(pods) == ["hello-0-leader", "hello-0-worker"]
    [waits] = pods["hello-0-worker"]["spec"]["initContainers"]
    assert waits["args"] == ["--podcliques=hello-0-leader:1"]
    assert "initContainers" not in pods["hello-0-leader"]["spec"]


@pytest.mark.parametrize("running", ["inference.yaml"], indirect=True)
def test_the_inference_has_the_gangs_that_the_document_shows(running: Shoal) -> None:
    gangs = running.objects(GANGS)
    cliques = names(running.objects(f"{GROVE}/namespaces/default/podcliques"))
    assert names(gangs) == {"chat-0", "chat-0-model-0"}
    assert cliques == {
        "chat-0-frontend",
        *(f"chat-0-model-{i}-{name}" for i in (0, 1) for name in ("prefill", "decode")),
    }
    assert [name for name in {*names(gangs), *cliques} if f"\n{name} " not in DOCUMENT] == []
    wait_until(lambda: {one["status"]["phase"] for one in running.objects(GANGS)} == {"Running"}, "both gangs to run")
    scalers = running.objects("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers")
    assert [scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers] == ["chat-0-frontend"]


@pytest.mark.parametrize("running", ["topology.yaml"], indirect=True)
def test_a_rack_is_a_label_of_nodes_to_the_scheduler(running: Shoal) -> None:
    labels = {"required": "topology.kubernetes.io/rack", "preferred": "kubernetes.io/hostname"}
    found = [gang["spec"]["topologyConstraint"]["packConstraint"] for gang in running.objects(GANGS)]
    assert found == [labels, labels]
    assert names(running.objects("/apis/kai.scheduler/v1alpha1/topologies")) == {"datacentre"}
    racks = {
        node["metadata"]["name"]: node["metadata"]["labels"][f"{TOPOLOGY}/rack"] for node in running.objects(NODES)
    }
    used: dict[str, set[str]] = {}
    for pod in running.objects(PODS):
        used.setdefault(pod["metadata"]["labels"]["grove.io/podgang"], set()).add(racks[pod["spec"]["nodeName"]])
    assert sorted(used) == ["packed-0", "packed-1"]
    assert [len(of_gang) for of_gang in used.values()] == [1, 1]


@pytest.mark.parametrize(
    ("running", "kind"),
    [
        ("schedulers/default.yaml", "scheduling.k8s.io/v1alpha1/{}/workloads"),
        ("schedulers/kai.yaml", "scheduling.run.ai/v2alpha2/{}/podgroups"),
        ("schedulers/koordinator.yaml", "scheduling.sigs.k8s.io/v1alpha1/{}/podgroups"),
        ("schedulers/volcano.yaml", "scheduling.volcano.sh/v1beta1/{}/podgroups"),
    ],
    indirect=["running"],
    ids=["default", "kai", "koordinator", "volcano"],
)
def test_each_scheduler_is_told_of_its_gang(running: Shoal, kind: str, request: pytest.FixtureRequest) -> None:
    [gang] = running.objects(GANGS)
    assert gang["metadata"]["labels"]["grove.io/scheduler-backend"] == request.node.callspec.id
    assert condition(gang, "BackendReady") == "True"
    told = running.objects(f"/apis/{kind.format('namespaces/default')}")
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in told} == {gang["metadata"]["uid"]}


def test_the_configuration_in_the_document_is_one() -> None:
    [shown] = [block.split("```")[0] for block in DOCUMENT.split("```yaml\n")[1:] if "OperatorConfiguration" in block]
    settings = read_configuration(shown).settings()
    assert settings.has_topologies
    assert settings.authorizing.is_enabled
