"""The bodies of what is made for a set, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.meta import Document
from shoal.gangs.hashes import template_hash
from shoal.gangs.plan import standalone_cliques
from shoal.gangs.sets import accounts, replica_keys
from shoal.gangs.sets.autoscalers import autoscalers
from shoal.gangs.sets.cliques import initial_clique, standalone_clique
from shoal.gangs.sets.groups import initial_scaling_group, scaling_group
from shoal.gangs.sets.services import headless_service
from shoal.kube import Key
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed


def clique_made_of(template: dict[str, Any], **of_set: Any) -> dict[str, Any]:
    pcs = typed(a_set("web", template, **of_set))
    return standalone_clique(pcs, standalone_cliques(pcs, 1)[0])


def test_a_clique_has_the_templates_labels_under_those_of_grove() -> None:
    theirs = {"team": "a", "app.kubernetes.io/part-of": "mine", "grove.io/podgang": "mine"}
    template = a_clique_template("front", labels=theirs)
    word = template_hash(typed(a_set("web", template)).spec.template.cliques[0], "")
    assert clique_made_of(template)["metadata"]["labels"] == {
        "team": "a",
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "web",
        "app.kubernetes.io/name": "web-1-front",
        "app.kubernetes.io/component": "pcs-podclique",
        "grove.io/podcliqueset-replica-index": "1",
        "grove.io/podgang": "web-1",
        "grove.io/pod-template-hash": word,
    }


def test_a_clique_has_the_templates_annotations_less_the_topology() -> None:
    template = a_clique_template("front", annotations={"grove.io/topology-name": "t", "note": "kept"})
    assert clique_made_of(template)["metadata"]["annotations"] == {"note": "kept"}
    assert "annotations" not in clique_made_of(a_clique_template("front"))["metadata"]


def test_a_clique_says_after_whom_it_starts_by_full_names_and_leaves_its_replicas_alone() -> None:
    pod_spec = a_pod_spec(nodeSelector={"a": "b"})
    pcs = typed(
        a_set(
            "web",
            a_clique_template("front", 2),
            a_clique_template("back", 3, min_available=2, pod_spec=pod_spec),
            cliqueStartupType="CliqueStartupTypeInOrder",
        )
    )
    planned = standalone_cliques(pcs, 0)[1]
    assert standalone_clique(pcs, planned)["spec"] == {
        "roleName": "back",
        "podSpec": pod_spec,
        "minAvailable": 2,
        "startsAfter": ["web-0-front"],
    }
    assert initial_clique(planned) == {
        "metadata": {"finalizers": ["grove.io/podclique.grove.io"]},
        "spec": {"replicas": 3},
    }


def test_a_clique_without_a_role_is_called_by_its_own_name() -> None:
    template = a_clique_template("front")
    del template["spec"]["roleName"]
    assert clique_made_of(template)["spec"]["roleName"] == "front"


@pytest.mark.parametrize(
    ("own", "of_set", "expected"),
    [
        pytest.param({}, {}, None, id="none"),
        pytest.param({"note": "a"}, {}, {"note": "a"}, id="its own"),
        pytest.param({}, {"grove.io/mnnvl-group": "g", "x": "y"}, {"grove.io/mnnvl-group": "g"}, id="the set's domain"),
        pytest.param(
            {"grove.io/mnnvl-group": "none"},
            {"grove.io/mnnvl-group": "g"},
            {"grove.io/mnnvl-group": "none"},
            id="its own domain before the set's",
        ),
    ],
)
def test_a_scaling_group_has_its_own_annotations_and_the_sets_domain(
    own: dict[str, str], of_set: dict[str, str], expected: dict[str, str] | None
) -> None:
    group = a_scaling_group_template("model", ["workers"], 4, min_available=2, annotations=own)
    pcs = typed(a_set("web", groups=[group], metadata={"annotations": of_set}))
    [config] = pcs.spec.template.pod_clique_scaling_groups
    body = scaling_group(pcs, 0, config)
    assert body["metadata"].get("annotations") == expected
    assert body["metadata"]["labels"]["app.kubernetes.io/component"] == "pcs-podcliquescalinggroup"
    assert body["spec"] == {"minAvailable": 2, "cliqueNames": ["workers"]}
    assert initial_scaling_group(config)["spec"] == {"replicas": 4}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        pytest.param({"headlessServiceConfig": {"publishNotReadyAddresses": True}}, True, id="asked for"),
        pytest.param({"headlessServiceConfig": {"publishNotReadyAddresses": False}}, False, id="not asked for"),
        pytest.param({"headlessServiceConfig": None}, True, id="nothing said"),
    ],
)
def test_a_service_selects_the_pods_of_its_replica(template: dict[str, Any], shown: bool) -> None:
    body = headless_service(typed(a_set("web", **template)), 2)
    assert body["metadata"]["name"] == "web-2"
    assert body["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": shown,
        "selector": {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": "web",
            "grove.io/podcliqueset-replica-index": "2",
        },
    }


def test_autoscalers_are_for_cliques_alone_and_groups_that_ask_for_one() -> None:
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ]
    front = a_clique_template("front", 2)
    front["spec"]["autoScalingConfig"] = {"maxReplicas": 5, "metrics": metrics}
    member = a_clique_template("worker", 2)
    member["spec"]["autoScalingConfig"] = {"maxReplicas": 5}
    pcs = typed(
        a_set(
            "web",
            front,
            member,
            a_clique_template("calm"),
            groups=[a_scaling_group_template("model", ["worker"], 3, scaleConfig={"minReplicas": 1, "maxReplicas": 4})],
        )
    )
    of_clique, of_group = autoscalers(pcs, 0)
    assert of_clique["metadata"]["name"] == "web-0-front"
    assert of_clique["spec"] == {
        "scaleTargetRef": {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "web-0-front"},
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": metrics,
    }
    assert of_group["spec"] == {
        "scaleTargetRef": {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueScalingGroup", "name": "web-0-model"},
        "minReplicas": 1,
        "maxReplicas": 4,
    }


def test_the_account_the_role_and_the_binding_name_each_other() -> None:
    pcs = typed(a_set("web"))
    account, role, binding = accounts.service_account(pcs), accounts.role(pcs), accounts.role_binding(pcs)
    secret = accounts.token_secret(pcs)
    assert account["automountServiceAccountToken"] is True
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "grove.io:pcs:web"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "web", "namespace": "default"}]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["name"] == "web-ic-sat"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "web"}


@pytest.mark.parametrize(
    ("content", "filled"),
    [
        pytest.param(None, False, id="no secret"),
        pytest.param({"metadata": {}}, False, id="no data"),
        pytest.param({"metadata": {}, "data": {"namespace": "eA=="}}, False, id="no token"),
        pytest.param({"metadata": {}, "data": {"token": "eA=="}}, True, id="a token"),
    ],
)
def test_a_token_is_there_once_the_secret_has_it(content: dict[str, Any] | None, filled: bool) -> None:
    assert accounts.has_token(None if content is None else Document.of(content)) is filled


def test_the_key_of_a_replica_leads_to_its_set_and_back() -> None:
    key = replica_keys.replica_key("default", "web-1", 12)
    assert replica_keys.set_key(key) == Key("default", "web-1")
    assert replica_keys.replica_index(key) == 12


@pytest.mark.parametrize(
    ("labels", "keys"),
    [
        pytest.param({}, [], id="nobody's"),
        pytest.param({"app.kubernetes.io/part-of": "web"}, [], id="someone else's"),
        pytest.param({"app.kubernetes.io/managed-by": "grove-operator"}, [], id="of no set"),
        pytest.param(
            {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}, [], id="the set's"
        ),
        pytest.param(
            {
                "app.kubernetes.io/managed-by": "grove-operator",
                "app.kubernetes.io/part-of": "web",
                "grove.io/podcliqueset-replica-index": "7",
            },
            [Key("default", "web/7")],
            id="a replica's",
        ),
        pytest.param(
            {
                "app.kubernetes.io/managed-by": "grove-operator",
                "app.kubernetes.io/part-of": "web",
                "grove.io/podcliqueset-replica-index": "seven",
            },
            [],
            id="no number",
        ),
    ],
)
def test_a_child_is_found_by_its_labels(labels: dict[str, str], keys: list[Key]) -> None:
    child = Document.of({"metadata": {"name": "x", "namespace": "default", "labels": labels}})
    assert list(replica_keys.key_of_replica(child)) == keys
