"""Applying on each server: what was applied is recognised, what others did is noticed, nothing foreign is touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from shoal.api.core import CONFIG_MAPS
from shoal.api.meta import Document, Resource, owner_reference
from shoal.kube import ApiError, Client, Conflict, Foreign, Informer, NotFound, Writer
from shoal.kube.managed_fields import difference, fields_of
from tests.support.clusters.client import client_to, install, writes
from tests.support.clusters.engines import Engine

MAPS = CONFIG_MAPS.documents()


def built_in(group: str, kind: str, plural: str) -> Resource[Document]:
    return Resource(type=Document, group=group, version="v1", kind=kind, plural=plural)


DEPLOYMENTS = built_in("apps", "Deployment", "deployments")
SERVICES = built_in("", "Service", "services")
JOBS = built_in("batch", "Job", "jobs")
PODS = built_in("", "Pod", "pods")
QUOTAS = built_in("", "ResourceQuota", "resourcequotas")
POLICIES = built_in("networking.k8s.io", "NetworkPolicy", "networkpolicies")
ROLES = built_in("rbac.authorization.k8s.io", "Role", "roles")
CLAIMS = built_in("", "PersistentVolumeClaim", "persistentvolumeclaims")

CONTAINER = {
    "name": "main",
    "image": "registry.example/app:1",
    "command": ["run", "--fast"],
    "env": [
        {"name": "A", "value": "1000m"},
        {"name": "EMPTY", "value": ""},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 81, "name": "x"}],
    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"cpu": 2, "nvidia.com/gpu": 8}},
    "readinessProbe": {"httpGet": {"path": "/", "port": "x"}, "periodSeconds": 5},
    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "cfg", "mountPath": "/cfg", "readOnly": True}],
    "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}, "privileged": False},
}
POD_SPEC = {
    "containers": [CONTAINER],
    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "cfg", "configMap": {"name": "cfg", "optional": True}}],
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "nodeSelector": {"zone": "a"},
    "terminationGracePeriodSeconds": 5,
    "hostNetwork": False,
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}
            ]
        }
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
    "imagePullSecrets": [{"name": "pull"}],
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC}
SHAPES = [
    pytest.param(MAPS, {"data": {"a": "1", "b": ""}, "binaryData": {"c": "AAE="}}, id="ConfigMap"),
    pytest.param(MAPS, {"data": {}}, id="ConfigMap with nothing in it"),
    pytest.param(MAPS, {"immutable": False, "metadata": {"labels": {"x": ""}, "annotations": {}}}, id="empty values"),
    # A pod's tolerations are left out: admission adds to that list, so that it is never as it was applied.
    pytest.param(PODS, {"spec": {key: POD_SPEC[key] for key in POD_SPEC if key != "tolerations"}}, id="Pod"),
    pytest.param(
        DEPLOYMENTS,
        {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}},
        id="Deployment",
    ),
    pytest.param(
        SERVICES,
        {
            "spec": {
                "selector": {"app": "web"},
                "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "x"}],
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
            }
        },
        id="headless Service",
    ),
    pytest.param(
        JOBS,
        {
            "spec": {
                "parallelism": 2,
                "completions": 2,
                "completionMode": "Indexed",
                "template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}},
            }
        },
        id="Indexed Job",
    ),
    pytest.param(QUOTAS, {"spec": {"hard": {"requests.cpu": "4000m", "pods": 10}}}, id="ResourceQuota"),
    pytest.param(
        POLICIES,
        {
            "spec": {
                "podSelector": {"matchLabels": {"app": "web"}},
                "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}],
                "policyTypes": ["Ingress"],
            }
        },
        id="NetworkPolicy, whose atomic lists the server fills with defaults",
    ),
    pytest.param(ROLES, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, id="Role"),
    pytest.param(
        CLAIMS,
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}},
        id="PersistentVolumeClaim",
    ),
]


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with client_to(engine.kubeconfig) as client:
        yield client


def informer_with(client: Client, resource: Resource[Document], *present: Document) -> Informer[Document]:
    """An informer that has read what is given, without a watch."""
    informer = Informer(client, resource)
    informer.replace(present, [], "1")
    return informer


def selective_informer(client: Client) -> Informer[Document]:
    """An informer that has read nothing, since it sees only what is labelled."""
    informer = Informer(client, MAPS, label_selector="app=ours")
    informer.replace([], [], "1")
    return informer


def named(namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {"name": "it", "namespace": namespace, **body.get("metadata", {})}}


@pytest.mark.parametrize(("resource", "body"), SHAPES)
async def test_what_was_just_applied_needs_no_second_write(
    client: Client, namespace: str, resource: Resource[Document], body: dict[str, Any]
) -> None:
    writer = Writer(client, "tester")
    wanted = named(namespace, body)
    made = await writer.apply(informer_with(client, resource), wanted, owner=None)
    before = writes(client.metrics)
    seen = await client.get(resource, "it", namespace)
    again = await writer.apply(informer_with(client, resource, seen), wanted, owner=None)
    assert writes(client.metrics) == before
    assert again.metadata.uid == made.metadata.uid


@pytest.mark.parametrize(("resource", "body"), SHAPES)
async def test_a_fresh_process_recognises_what_its_predecessor_applied(
    client: Client, namespace: str, resource: Resource[Document], body: dict[str, Any]
) -> None:
    wanted = named(namespace, body)
    await Writer(client, "tester").apply(informer_with(client, resource), wanted, owner=None)
    seen = await client.get(resource, "it", namespace)
    owned = fields_of(seen.content, "tester")
    assert owned is not None
    assert difference(wanted, seen.content, owned) is None


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param({"data": {"ours": "changed"}}, id="changed"),
        pytest.param({"data": {"ours": None}}, id="removed"),
        pytest.param({"metadata": {"labels": {"role": None}}}, id="a label removed"),
    ],
)
async def test_what_others_do_to_our_fields_is_undone(client: Client, namespace: str, foreign: dict[str, Any]) -> None:
    writer = Writer(client, "tester")
    wanted = named(namespace, {"data": {"ours": "1"}, "metadata": {"labels": {"role": "x"}}})
    await writer.apply(informer_with(client, MAPS), wanted, owner=None)
    seen = await client.merge_patch(MAPS, "it", foreign, namespace, field_manager="vandal")
    mended = await writer.apply(informer_with(client, MAPS, seen), wanted, owner=None)
    assert mended.content["data"] == {"ours": "1"}
    assert mended.metadata.labels == {"role": "x"}


def deployment(**container: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "x", **container}]}}
    return {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}}


def policy(peer: dict[str, Any], **spec: Any) -> dict[str, Any]:
    whole = {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{"from": [peer]}], "policyTypes": ["Ingress"]}
    return {"spec": whole | spec}


PEER = {"podSelector": {"matchLabels": {"x": "y"}}}
RIGHTS = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]


@pytest.mark.parametrize(
    ("resource", "one", "two"),
    [
        pytest.param(DEPLOYMENTS, deployment(args=["--insecure"]), deployment(args=[]), id="a list emptied"),
        pytest.param(POLICIES, policy(PEER), policy(PEER, podSelector={}), id="a selector emptied"),
        pytest.param(POLICIES, policy(PEER), policy({**PEER, "namespaceSelector": {}}), id="an empty selector added"),
        pytest.param(POLICIES, policy(PEER), policy(PEER, ingress=[]), id="everything denied"),
        pytest.param(ROLES, {"rules": RIGHTS}, {"rules": []}, id="rights taken away"),
        pytest.param(
            DEPLOYMENTS,
            deployment(ports=[{"containerPort": 80, "protocol": "UDP"}]),
            deployment(ports=[{"containerPort": 80}]),
            id="a port back to its default protocol",
        ),
        pytest.param(
            MAPS, {"data": {"capacity": "1.0"}}, {"data": {"capacity": "1"}}, id="text that looks like amounts"
        ),
    ],
)
async def test_a_change_that_is_easily_missed_is_written(
    client: Client, namespace: str, resource: Resource[Document], one: dict[str, Any], two: dict[str, Any]
) -> None:
    writer = Writer(client, "tester")
    await writer.apply(informer_with(client, resource), named(namespace, one), owner=None)
    seen = await client.get(resource, "it", namespace)
    changed = await writer.apply(informer_with(client, resource, seen), named(namespace, two), owner=None)
    assert changed.metadata.resource_version != seen.metadata.resource_version
    before = writes(client.metrics)
    await writer.apply(informer_with(client, resource, changed), named(namespace, two), owner=None)
    assert writes(client.metrics) == before


@pytest.mark.parametrize("theirs", [{"a": "stranger"}, {"b": "stranger"}], ids=["the same field", "another field"])
async def test_an_object_that_the_cache_does_not_show_yet_is_left_to_its_maker(
    client: Client, namespace: str, theirs: dict[str, str]
) -> None:
    parent = await client.create(MAPS, {"metadata": {"name": "owner"}}, namespace)
    await client.create(MAPS, {"metadata": {"name": "it"}, "data": theirs}, namespace)
    with pytest.raises((Foreign, Conflict)):
        await Writer(client, "tester").apply(
            informer_with(client, MAPS), named(namespace, {"data": {"a": "ours"}}), owner=owner_reference(parent, MAPS)
        )
    left = await client.get(MAPS, "it", namespace)
    assert left.content["data"] == theirs
    assert left.metadata.owner_references == []


@pytest.mark.parametrize("theirs", [{"a": "stranger"}, {"b": "stranger"}], ids=["the same field", "another field"])
async def test_an_object_made_in_the_same_moment_is_left_to_its_maker(
    client: Client, namespace: str, theirs: dict[str, str]
) -> None:
    class Slow(Writer):
        async def _live(self, resource: Resource[Document], name: str, namespace: str) -> Document | None:
            found = await super()._live(resource, name, namespace)
            await client.create(MAPS, {"metadata": {"name": name}, "data": theirs}, namespace)
            return found

    parent = await client.create(MAPS, {"metadata": {"name": "owner"}}, namespace)
    owner = owner_reference(parent, MAPS)
    with pytest.raises((Foreign, Conflict)):
        await Slow(client, "tester").apply(
            selective_informer(client), named(namespace, {"data": {"a": "ours"}}), owner=owner
        )
    left = await client.get(MAPS, "it", namespace)
    assert left.content["data"] == theirs
    assert left.metadata.owner_references == []


async def test_an_object_that_a_selection_hides_is_not_written_to(client: Client, namespace: str) -> None:
    parent = await client.create(MAPS, {"metadata": {"name": "owner"}}, namespace)
    theirs = await client.create(MAPS, {"metadata": {"name": "it"}, "data": {"b": "stranger"}}, namespace)
    with pytest.raises(Foreign):
        await Writer(client, "tester").apply(
            selective_informer(client), named(namespace, {"data": {"a": "ours"}}), owner=owner_reference(parent, MAPS)
        )
    assert (await client.get(MAPS, "it", namespace)).metadata.resource_version == theirs.metadata.resource_version


async def test_what_a_late_cache_does_not_show_is_looked_for_before_it_is_made(client: Client, namespace: str) -> None:
    """Also where the same manager made it for another owner: a first apply could not tell that from its own."""
    writer = Writer(client, "tester")
    first = await client.create(MAPS, {"metadata": {"name": "first"}}, namespace)
    second = await client.create(MAPS, {"metadata": {"name": "second"}}, namespace)
    wanted = named(namespace, {"data": {"a": "1"}})
    await writer.apply(informer_with(client, MAPS), wanted, owner=owner_reference(first, MAPS))
    with pytest.raises(Foreign):
        await writer.apply(informer_with(client, MAPS), wanted, owner=owner_reference(second, MAPS))


async def test_an_object_of_which_we_want_nothing_but_its_name_is_made(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    made = await writer.apply(informer_with(client, MAPS), named(namespace, {}), owner=None)
    assert made.metadata.name == "it"


async def test_a_field_that_nobody_knows_is_refused_at_once(client: Client, namespace: str) -> None:
    with pytest.raises(ApiError, match="dat: field not declared in schema"):
        async with asyncio.timeout(5):
            await Writer(client, "tester").apply(
                informer_with(client, MAPS), named(namespace, {"dat": {"a": "1"}}), owner=None
            )


async def test_mistakes_of_the_caller_are_named(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    with pytest.raises(ValueError, match=r"has no metadata\.name"):
        await writer.apply(informer_with(client, MAPS), {"metadata": {"namespace": namespace}}, owner=None)
    with pytest.raises(ValueError, match="says kind Secret, but is written as ConfigMap"):
        await writer.apply(informer_with(client, MAPS), named(namespace, {"kind": "Secret"}), owner=None)
    with pytest.raises(TypeError, match="configmaps are applied whole"):
        await writer.apply(Informer(client, CONFIG_MAPS), named(namespace, {}), owner=None)  # type: ignore[arg-type]


async def test_initial_annotations_stay_as_well(client: Client, namespace: str) -> None:
    initial = {"metadata": {"annotations": {"keep": "me"}}}
    wanted = named(namespace, {"data": {"a": "1"}})
    made = await Writer(client, "tester").apply(informer_with(client, MAPS), wanted, owner=None, initial=initial)
    assert made.metadata.annotations == {"keep": "me"}


async def test_a_field_that_is_not_wanted_any_more_goes_but_those_of_others_stay(
    client: Client, namespace: str
) -> None:
    writer = Writer(client, "tester")
    first = await writer.apply(
        informer_with(client, MAPS), named(namespace, {"data": {"a": "1", "b": "2"}}), owner=None
    )
    seen = await client.merge_patch(MAPS, "it", {"data": {"c": "theirs"}}, namespace, field_manager="other")
    after = await writer.apply(informer_with(client, MAPS, seen), named(namespace, {"data": {"a": "1"}}), owner=None)
    assert first.content["data"] == {"a": "1", "b": "2"}
    assert after.content["data"] == {"a": "1", "c": "theirs"}


async def test_an_object_that_was_replaced_by_a_stranger_is_not_written_to(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    wanted = named(namespace, {"data": {"a": "1"}})
    seen = await writer.apply(informer_with(client, MAPS), wanted, owner=None)
    await client.delete(MAPS, "it", namespace)
    await client.create(MAPS, {"metadata": {"name": "it"}, "data": {"a": "stranger"}}, namespace)
    stale = informer_with(client, MAPS, seen)
    with pytest.raises(Conflict):
        await writer.apply(stale, named(namespace, {"data": {"a": "2"}}), owner=None)
    assert (await client.get(MAPS, "it", namespace)).content["data"] == {"a": "stranger"}


async def test_an_initial_field_is_set_once_and_then_belongs_to_others(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    body = {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}}
    wanted, initial = named(namespace, body), {"spec": {"replicas": 4}}
    made = await writer.apply(informer_with(client, DEPLOYMENTS), wanted, owner=None, initial=initial)
    assert made.content["spec"]["replicas"] == 4
    await client.scale(DEPLOYMENTS, "it", 9, namespace)
    assert await client.replicas(DEPLOYMENTS, "it", namespace) == 9
    seen = await client.get(DEPLOYMENTS, "it", namespace)
    before = writes(client.metrics)
    again = await writer.apply(informer_with(client, DEPLOYMENTS, seen), wanted, owner=None, initial=initial)
    assert writes(client.metrics) == before
    changed = named(namespace, {"spec": {**body["spec"], "minReadySeconds": 3}})
    again = await writer.apply(informer_with(client, DEPLOYMENTS, seen), changed, owner=None, initial=initial)
    assert again.content["spec"]["replicas"] == 9
    assert again.content["spec"]["minReadySeconds"] == 3


async def test_a_child_with_initial_fields_is_made_by_one_write(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    body = {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}}
    wanted, initial = named(namespace, body), {"metadata": {"finalizers": ["a.b/c"]}, "spec": {"replicas": 4}}
    before = writes(client.metrics)
    made = await writer.apply(informer_with(client, DEPLOYMENTS), wanted, owner=None, initial=initial)
    assert writes(client.metrics) == before + 1
    later = {**initial, "spec": {"replicas": 5}}
    again = await Writer(client, "tester").apply(
        informer_with(client, DEPLOYMENTS, made), wanted, owner=None, initial=later
    )
    assert writes(client.metrics) == before + 1
    changed = named(namespace, {"spec": {**body["spec"], "minReadySeconds": 3}})
    again = await writer.apply(informer_with(client, DEPLOYMENTS, made), changed, owner=None, initial=later)
    assert again.content["spec"]["replicas"] == 4, "what is initial now was not when it was made"
    assert again.metadata.finalizers == ["a.b/c"]
    assert again.content["spec"]["minReadySeconds"] == 3
    before = writes(client.metrics)
    await writer.apply(informer_with(client, DEPLOYMENTS, again), changed, owner=None, initial=later)
    assert writes(client.metrics) == before


async def test_initial_fields_that_someone_changes_as_they_are_let_go_stay_so(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    body = {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}}
    wanted, initial = named(namespace, body), {"spec": {"replicas": 4}}
    made = await writer.apply(informer_with(client, DEPLOYMENTS), wanted, owner=None, initial=initial)
    await client.scale(DEPLOYMENTS, "it", 9, namespace)
    changed = named(namespace, {"spec": {**body["spec"], "minReadySeconds": 3}})
    stale = informer_with(client, DEPLOYMENTS, made)
    with pytest.raises(Conflict):
        await writer.apply(stale, changed, owner=None, initial=initial)
    assert await client.replicas(DEPLOYMENTS, "it", namespace) == 9


async def test_an_initial_field_survives_a_process_that_died_in_between(client: Client, namespace: str) -> None:
    """The child was made with its initial fields, and nobody had taken them over when the process was killed."""
    body = {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}}
    wanted = named(namespace, body)
    whole = named(namespace, {"spec": {**body["spec"], "replicas": 4}})
    half = await client.apply(DEPLOYMENTS, whole, namespace, name="it", field_manager="tester")
    writer = Writer(client, "tester")
    initial = {"spec": {"replicas": 4}}
    after = await writer.apply(informer_with(client, DEPLOYMENTS, half), wanted, owner=None, initial=initial)
    assert after.content["spec"]["replicas"] == 4


async def test_a_status_is_applied_only_where_it_differs(client: Client, namespace: str) -> None:
    condition = {"type": "Ready", "status": "True", "reason": "Up", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    schema = {
        "type": "object",
        "properties": {
            "status": {
                "type": "object",
                "properties": {
                    "conditions": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                        "items": {
                            "type": "object",
                            "required": ["type"],
                            "properties": {
                                name: {"type": "string"}
                                for name in ("type", "status", "reason", "message", "lastTransitionTime")
                            },
                        },
                    }
                },
            }
        },
    }
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    crd = {
        "metadata": {"name": "things.writer.shoal.dev"},
        "spec": {"group": "writer.shoal.dev", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    await install(client, crd)
    things = built_in("writer.shoal.dev", "Thing", "things")
    seen = await client.create(things, {"metadata": {"name": "it"}}, namespace)
    writer = Writer(client, "tester")
    status = {"conditions": [condition]}
    seen = await writer.apply_status(things, seen, status)
    before = writes(client.metrics)
    await writer.apply_status(things, await client.get(things, "it", namespace), status)
    assert writes(client.metrics) == before
    assert seen.content["status"]["conditions"][0]["status"] == "True"

    stale = replace_version(seen, "1")
    with pytest.raises(Conflict):
        await writer.patch_status(things, stale, before={}, after={"conditions": []})
    assert not await writer.patch_status(things, seen, before=status, after=status)
    assert await writer.patch_status(things, seen, before=status, after={})
    assert (await client.get(things, "it", namespace)).content["status"] == {}


def replace_version(found: Document, version: str) -> Document:
    return Document(msgspec.structs.replace(found.metadata, resource_version=version), found.content)


async def test_pruning_deletes_exactly_what_is_not_kept(client: Client, namespace: str) -> None:
    writer = Writer(client, "tester")
    seen = [await client.create(MAPS, {"metadata": {"name": name}}, namespace) for name in ("a", "b", "c")]
    await client.delete(MAPS, "c", namespace)
    await writer.prune(MAPS, seen, keep=["a"])
    names = {found.metadata.name for found in (await client.list(MAPS, namespace)).items}
    assert {"a"} == names & {"a", "b", "c"}
    with pytest.raises(NotFound):
        await client.get(MAPS, "b", namespace)
