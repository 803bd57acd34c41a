"""What a pod is made of."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.grove import PodClique, names
from shoal.gangs.backends import Backends
from shoal.gangs.backends.registry import built_in
from shoal.gangs.cliques.pods import Mould, wanted_pod
from shoal.gangs.plan import group_cliques, standalone_cliques
from shoal.gangs.settings import GangSettings
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed
from tests.gangs.cliques.builders import a_naming_gang, clique_body

OURS = [
    "GROVE_PCS_NAME",
    "GROVE_PCS_INDEX",
    "GROVE_PCLQ_NAME",
    "GROVE_HEADLESS_SERVICE",
    "GROVE_PCLQ_POD_INDEX",
]


def a_mould(pcs_body: dict[str, Any], *, clique: int = 0, backend: str = "kai", in_group: bool = False) -> Mould:
    pcs = typed(pcs_body)
    if in_group:
        planned = group_cliques(pcs, 0, pcs.spec.template.pod_clique_scaling_groups[0], 1)[clique]
    else:
        planned = standalone_cliques(pcs, 0)[clique]
    return Mould(
        pcs=pcs,
        clique=msgspec.convert(clique_body(pcs, planned), PodClique),
        planned=planned,
        gang=a_naming_gang({planned.name: []}, name=planned.gang, backend=backend),
        backends=Backends(built_in()),
        settings=GangSettings(start_image="start:1"),
    )


def with_spec(**fields: Any) -> dict[str, Any]:
    return a_set("web", a_clique_template("workers", pod_spec=a_pod_spec(**fields)))


def test_a_pod_knows_its_place() -> None:
    template = a_clique_template("workers", labels={"app": "x"}, annotations={"a": "b", "grove.io/topology-name": "t"})
    pod = wanted_pod(a_mould(a_set("web", template)), 3)
    labels = dict(pod["metadata"]["labels"])
    assert labels.pop(names.TEMPLATE_HASH_LABEL)
    assert labels == {
        "app": "x",
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "web",
        "app.kubernetes.io/name": "web-0-workers",
        "app.kubernetes.io/component": "pcs-podclique",
        "grove.io/podclique": "web-0-workers",
        "grove.io/podgang": "web-0",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podclique-pod-index": "3",
        "kai.scheduler/subgroup-name": "web-0-workers",
    }
    assert pod["metadata"]["generateName"] == "web-0-workers-"
    assert pod["metadata"]["annotations"] == {
        "a": "b",
        "kai.scheduler/skip-podgrouper": "true",
        "pod-group-name": "pg-web-0-uid-of-the-gang",
    }
    assert pod["spec"]["hostname"] == "web-0-workers-3"
    assert pod["spec"]["subdomain"] == "web-0"
    assert pod["spec"]["schedulerName"] == "kai-scheduler"


def test_our_gate_replaces_the_users() -> None:
    pod = wanted_pod(a_mould(with_spec(schedulingGates=[{"name": "theirs"}])), 0)
    assert pod["spec"]["schedulingGates"] == [{"name": "grove.io/podgang-pending-creation"}]


def test_every_container_has_our_variables_first_and_the_users_after() -> None:
    own = [{"name": "A", "value": "1"}, {"name": "GROVE_PCS_NAME", "value": "mine"}]
    body = with_spec(
        containers=[{"name": "main", "image": "i", "env": own}, {"name": "bare", "image": "i"}],
        initContainers=[{"name": "first", "image": "i", "env": own}],
    )
    spec = wanted_pod(a_mould(body), 0)["spec"]
    for container, rest in (
        (spec["containers"][0], ["A"]),
        (spec["containers"][1], []),
        (spec["initContainers"][0], ["A"]),
    ):
        assert [variable["name"] for variable in container["env"]] == [*OURS, *rest]
    values = {variable["name"]: variable.get("value") for variable in spec["containers"][0]["env"]}
    assert values["GROVE_PCS_NAME"] == "web"
    assert values["GROVE_PCS_INDEX"] == "0"
    assert values["GROVE_PCLQ_NAME"] == "web-0-workers"
    assert values["GROVE_HEADLESS_SERVICE"] == "web-0.default.svc.cluster.local"
    reference = spec["containers"][0]["env"][4]["valueFrom"]["fieldRef"]["fieldPath"]
    assert reference == "metadata.labels['grove.io/podclique-pod-index']"


def test_what_the_user_chose_stays() -> None:
    body = with_spec(
        serviceAccountName="theirs", restartPolicy="Never", priorityClassName="low", nodeSelector={"a": "b"}
    )
    spec = wanted_pod(a_mould(body), 0)["spec"]
    assert (spec["serviceAccountName"], spec["restartPolicy"]) == ("theirs", "Never")
    assert (spec["priorityClassName"], spec["nodeSelector"]) == ("low", {"a": "b"})


def test_the_sets_priority_class_is_every_pods() -> None:
    body = a_set("web", a_clique_template(pod_spec=a_pod_spec(priorityClassName="low")), priorityClassName="high")
    assert wanted_pod(a_mould(body), 0)["spec"]["priorityClassName"] == "high"


def test_the_template_is_not_changed_by_making_pods() -> None:
    mould = a_mould(with_spec(initContainers=[{"name": "first", "image": "i"}]))
    before = msgspec.json.encode(mould.clique)
    wanted_pod(mould, 0)
    assert msgspec.json.encode(mould.clique) == before


def test_a_pod_that_starts_after_others_waits_in_its_last_init_container() -> None:
    body = a_set(
        "web",
        a_clique_template("first", 2),
        a_clique_template("second", pod_spec=a_pod_spec(initContainers=[{"name": "own", "image": "i"}])),
        cliqueStartupType="CliqueStartupTypeInOrder",
    )
    spec = wanted_pod(a_mould(body, clique=1), 0)["spec"]
    assert [container["name"] for container in spec["initContainers"]] == ["own", "grove-initc"]
    waiting = spec["initContainers"][-1]
    assert waiting["args"] == ["--podcliques=web-0-first:2"]
    assert waiting["image"] == "start:1"
    assert "env" not in waiting
    assert [volume["name"] for volume in spec["volumes"]] == ["sa-token-secret-vol", "pod-info-vol"]
    assert "initContainers" not in wanted_pod(a_mould(body, clique=0), 0)["spec"]


def test_a_pod_of_a_scaled_gang_names_the_gang_that_it_waits_for() -> None:
    body = a_set("web", a_clique_template("a"), groups=[a_scaling_group_template("group", ["a"], 2)])
    labels = wanted_pod(a_mould(body, in_group=True), 0)["metadata"]["labels"]
    assert labels["grove.io/podgang"] == "web-0-group-0"
    assert labels["grove.io/base-podgang"] == "web-0"
    assert labels["grove.io/podcliquescalinggroup"] == "web-0-group"
    assert labels["grove.io/podcliquescalinggroup-replica-index"] == "1"


def test_a_gang_of_a_scheduler_that_nobody_speaks_for_has_plain_pods() -> None:
    pod = wanted_pod(a_mould(with_spec(schedulerName="theirs"), backend="unknown"), 0)
    assert pod["spec"]["schedulerName"] == "theirs"
    assert "annotations" not in pod["metadata"]


def test_shared_claims_come_with_the_pods_own_number() -> None:
    template = a_clique_template("workers", resourceSharing=[{"name": "gpu", "scope": "PerReplica"}])
    body = a_set("web", template, resourceClaimTemplates=[{"name": "gpu", "templateSpec": {"spec": {}}}])
    spec = wanted_pod(a_mould(body), 4)["spec"]
    assert [claim["resourceClaimName"] for claim in spec["resourceClaims"]] == ["web-0-workers-4-gpu"]
