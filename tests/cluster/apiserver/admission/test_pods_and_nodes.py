"""What pods and nodes are given, and refused, each by one plugin; the words are a real server's."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from shoal.cluster.apiserver.admission.node_conditions import DefaultTolerationSeconds, TaintNodesByCondition
from shoal.cluster.apiserver.admission.priority import Priority
from shoal.cluster.apiserver.admission.runtime_class import RuntimeClasses, merged_tolerations
from shoal.cluster.apiserver.admission.service_account import ServiceAccounts
from shoal.cluster.apiserver.admission.topology_labels import PodTopologyLabels
from tests.cluster.apiserver.admission.memory import (
    NODE,
    POD,
    PRIORITY_CLASS,
    Memory,
    a_container,
    a_team_pod,
    an_account,
    creating,
    refusal_of,
    updating,
)

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def accounts(*objects: Any) -> ServiceAccounts:
    return ServiceAccounts(Memory(*objects), source=random.Random(1), pause=0)


async def test_a_pod_gets_the_default_account_and_its_token() -> None:
    pod = a_team_pod(initContainers=[a_container("i")])
    await accounts(an_account()).mutate(creating(POD, pod))
    spec = pod["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT}
    assert [each["volumeMounts"] for each in (*spec["initContainers"], *spec["containers"])] == [[mount], [mount]]


async def test_a_token_is_mounted_once_however_often_admission_runs() -> None:
    pod = a_team_pod()
    plugin = accounts(an_account())
    await plugin.mutate(creating(POD, pod))
    once = copy.deepcopy(pod)
    await plugin.mutate(creating(POD, pod))
    assert pod == once


@pytest.mark.parametrize(
    ("account", "spec", "mounts"),
    [
        pytest.param({}, {}, True, id="by default"),
        pytest.param({"automountServiceAccountToken": False}, {}, False, id="the account says no"),
        pytest.param({}, {"automountServiceAccountToken": False}, False, id="the pod says no"),
        pytest.param(
            {"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True, id="the pod decides"
        ),
        pytest.param(
            {}, {"containers": [a_container(volumeMounts=[{"name": "x", "mountPath": MOUNT}])]}, False, id="taken"
        ),
    ],
)
async def test_a_token_is_mounted_unless_somebody_says_no(account: Any, spec: Any, mounts: bool) -> None:
    pod = a_team_pod(**copy.deepcopy(spec))
    await accounts(an_account(**account)).mutate(creating(POD, pod))
    assert ("volumes" in pod["spec"]) is mounts


async def test_pull_secrets_are_the_accounts_unless_the_pod_has_some() -> None:
    plugin = accounts(an_account(imagePullSecrets=[{"name": "a"}, {"name": "b"}]))
    without, with_some = a_team_pod(), a_team_pod(imagePullSecrets=[{"name": "own"}])
    await plugin.mutate(creating(POD, without))
    await plugin.mutate(creating(POD, with_some))
    assert without["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert with_some["spec"]["imagePullSecrets"] == [{"name": "own"}]


@pytest.mark.parametrize("name", ["zz", "default"])
async def test_an_account_that_is_not_there_is_refused(name: str) -> None:
    status = await refusal_of(accounts().mutate(creating(POD, a_team_pod(serviceAccountName=name))))
    assert status.code == 403
    assert status.message == (
        f'pods "p" is forbidden: error looking up service account team/{name}: serviceaccount "{name}" not found'
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"volumes": [{"name": "v", "secret": {"secretName": "x"}}]},
            'volume with secret.secretName="x" is not allowed because service account default does not reference '
            "that secret",
            id="volume",
        ),
        pytest.param(
            {
                "containers": [
                    a_container(env=[{"name": "E", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}])
                ]
            },
            'container c with envVar E referencing secret.secretName="x" is not allowed because service account '
            "default does not reference that secret",
            id="variable",
        ),
        pytest.param(
            {"initContainers": [a_container("i", envFrom=[{"secretRef": {"name": "x"}}])]},
            'init container i with envFrom referencing secret.secretName="x" is not allowed because service account '
            "default does not reference that secret",
            id="environment",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "x"}]},
            'imagePullSecrets[0].name="x" is not allowed because service account default does not reference that '
            "imagePullSecret",
            id="pull secret",
        ),
        pytest.param({"volumes": [{"name": "v", "secret": {"secretName": "known"}}]}, "", id="one of its own"),
    ],
)
async def test_an_account_may_keep_its_pods_to_its_secrets(spec: Any, problem: str) -> None:
    storage, account = an_account(secrets=[{"name": "known"}])
    account["metadata"]["annotations"] = {"kubernetes.io/enforce-mountable-secrets": "true"}
    doing = accounts((storage, account)).mutate(creating(POD, a_team_pod(**copy.deepcopy(spec))))
    if not problem:
        await doing
    else:
        assert (await refusal_of(doing)).message == f'pods "p" is forbidden: {problem}'


async def test_a_mirror_pod_has_no_account() -> None:
    pod = a_team_pod()
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    await accounts().mutate(creating(POD, pod))
    assert "serviceAccountName" not in pod["spec"]
    pod["spec"]["serviceAccountName"] = "default"
    status = await refusal_of(accounts().mutate(creating(POD, pod)))
    assert status.message == 'pods "p" is forbidden: a mirror pod may not reference service accounts'


HIGH = ("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
USUAL = ("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True})


@pytest.mark.parametrize(
    ("classes", "spec", "result"),
    [
        pytest.param([HIGH], {}, (None, 0, "PreemptLowerPriority"), id="no class"),
        pytest.param([HIGH], {"priorityClassName": "high"}, ("high", 1000, "Never"), id="its class"),
        pytest.param([HIGH, USUAL], {}, ("usual", 10, None), id="the default class"),
        pytest.param(
            [],
            {"priorityClassName": "system-node-critical"},
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            id="a system class",
        ),
        pytest.param([HIGH], {"priorityClassName": "high", "priority": 1000}, ("high", 1000, "Never"), id="the same"),
    ],
)
async def test_a_pods_priority_is_its_classs(classes: Any, spec: Any, result: Any) -> None:
    pod = a_team_pod(**spec)
    await Priority(Memory(*classes)).mutate(creating(POD, pod))
    got = pod["spec"]
    assert (got.get("priorityClassName"), got["priority"], got.get("preemptionPolicy")) == result


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"priorityClassName": "zz"}, "no PriorityClass with name zz was found", id="unknown"),
        pytest.param(
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
            id="a number",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="a policy",
        ),
    ],
)
async def test_a_priority_cannot_be_chosen(spec: Any, problem: str) -> None:
    status = await refusal_of(Priority(Memory()).mutate(creating(POD, a_team_pod(**spec))))
    assert status.message == f'pods "p" is forbidden: {problem}'


async def test_an_update_keeps_the_priority() -> None:
    new, old = a_team_pod(), a_team_pod(priority=7, preemptionPolicy="Never")
    await Priority(Memory()).mutate(updating(POD, new, old))
    assert (new["spec"]["priority"], new["spec"]["preemptionPolicy"]) == (7, "Never")


async def test_there_is_one_default_class() -> None:
    plugin = Priority(Memory(USUAL))
    other = {"metadata": {"name": "other"}, "globalDefault": True}
    status = await refusal_of(plugin.validate(creating(PRIORITY_CLASS, other)))
    assert status.message == (
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. '
        "Only one default can exist"
    )
    await plugin.validate(updating(PRIORITY_CLASS, USUAL[1], USUAL[1]))


def a_toleration(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("held", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="none"),
        pytest.param([{"key": NOT_READY, "effect": "NoExecute"}], [UNREACHABLE], id="one"),
        pytest.param([{"operator": "Exists"}], [], id="all"),
        pytest.param([{"key": NOT_READY, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="another effect"),
        pytest.param([{"key": "x", "effect": "NoExecute"}], [NOT_READY, UNREACHABLE], id="another key"),
    ],
)
async def test_a_pod_stays_five_minutes_on_a_lost_node(held: Any, added: list[str]) -> None:
    pod = a_team_pod(tolerations=copy.deepcopy(held))
    await DefaultTolerationSeconds().mutate(creating(POD, pod))
    assert pod["spec"]["tolerations"] == held + [a_toleration(key) for key in added]


async def test_a_new_node_is_tainted_until_it_is_ready() -> None:
    node: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {}}
    for _ in range(2):
        await TaintNodesByCondition().mutate(creating(NODE, node))
    assert node["spec"]["taints"] == [{"key": NOT_READY, "effect": "NoSchedule"}]


RUNTIME = (
    "runtimeclasses.node.k8s.io",
    {
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    },
)


async def test_a_runtime_class_brings_its_overhead_and_its_nodes() -> None:
    pod = a_team_pod(runtimeClassName="kata", nodeSelector={"a": "b"})
    plugin = RuntimeClasses(Memory(RUNTIME))
    for _ in range(2):
        await plugin.mutate(creating(POD, pod))
    await plugin.validate(creating(POD, pod))
    assert pod["spec"]["overhead"] == {"cpu": "250m"}
    assert pod["spec"]["nodeSelector"] == {"a": "b", "kata": "yes"}
    assert pod["spec"]["tolerations"] == [{"key": "kata", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"runtimeClassName": "zz"}, 'pod rejected: RuntimeClass "zz" not found', id="unknown"),
        pytest.param(
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="an overhead of its own",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
            id="other nodes",
        ),
    ],
)
async def test_a_pod_cannot_contradict_its_runtime_class(spec: Any, problem: str) -> None:
    plugin, request = RuntimeClasses(Memory(RUNTIME)), creating(POD, a_team_pod(**spec))

    async def admit() -> None:
        await plugin.mutate(request)
        await plugin.validate(request)

    assert (await refusal_of(admit())).message == f'pods "p" is forbidden: {problem}'


def test_tolerations_that_others_include_are_left_out() -> None:
    wide, narrow = {"operator": "Exists"}, {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    assert merged_tolerations([narrow], [wide]) == [wide]
    assert merged_tolerations([wide], [narrow]) == [wide]
    assert merged_tolerations([narrow], [narrow]) == [narrow]
    short = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert merged_tolerations([short], [short | {"tolerationSeconds": 9}]) == [short | {"tolerationSeconds": 9}]


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def topology() -> PodTopologyLabels:
    labels = {ZONE: "a", REGION: "r", "disk": "ssd"}
    return PodTopologyLabels(Memory(("nodes", {"metadata": {"name": "n", "labels": labels}})))


async def test_a_pod_that_is_made_on_a_node_is_labelled_with_its_zone_and_region() -> None:
    pod = a_team_pod(nodeName="n")
    pod["metadata"]["labels"] = {"app": "x", ZONE: "elsewhere"}
    await topology().mutate(creating(POD, pod))
    assert pod["metadata"]["labels"] == {"app": "x", ZONE: "a", REGION: "r"}


async def test_a_binding_hands_the_zone_of_its_node_on() -> None:
    binding: dict[str, Any] = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    await topology().mutate(creating(POD, binding, subresource="binding"))
    assert binding["metadata"]["labels"] == {ZONE: "a", REGION: "r"}


@pytest.mark.parametrize(
    "pod", [a_team_pod(), a_team_pod(nodeName="unknown")], ids=["on no node", "on an unknown node"]
)
async def test_a_pod_without_a_known_node_gets_no_labels(pod: Any) -> None:
    await topology().mutate(creating(POD, pod))
    assert "labels" not in pod["metadata"]
