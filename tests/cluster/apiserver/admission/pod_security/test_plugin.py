"""PodSecurity before requests: what is refused, warned of and left alone, by the labels of a namespace."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_security import PodSecurity, PodSecurityMetrics
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from tests.cluster.apiserver.admission.memory import (
    CONFIG_MAP,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    Memory,
    a_container,
    a_kind,
    a_namespace,
    a_team_pod,
    an_account,
    creating,
    refusal_of,
    updating,
)
from tests.cluster.apiserver.conftest import Ask

PREFIX = "pod-security.kubernetes.io/"
HOST = "host namespaces (hostNetwork=true)"


def labels(**modes: str) -> dict[str, str]:
    return {PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}


def a_plugin(*objects: tuple[str, Object], **modes: str) -> PodSecurity:
    """The plugin, in a cluster with one namespace that has these labels."""
    return PodSecurity(Memory(a_namespace(**labels(**modes)), *objects), PodSecurityMetrics(minor=36))


def a_workload(kind: Kind, **spec: Any) -> Attributes:
    return creating(kind, {"metadata": {"name": "w", "namespace": "team"}, **spec})


BAD_POD = a_team_pod(hostNetwork=True)
BAD_TEMPLATE = {"metadata": {"labels": {"app": "w"}}, "spec": {"hostNetwork": True, "containers": [a_container()]}}


async def test_the_chain_of_admission_refuses_a_privileged_pod_with_a_folder_of_the_host() -> None:
    chain = Chain(Memory(a_namespace(**labels(enforce="baseline")), an_account()))
    pod = a_team_pod(
        containers=[a_container(securityContext={"privileged": True})],
        volumes=[{"name": "root", "hostPath": {"path": "/"}}],
    )
    request = creating(POD, pod)
    await chain.mutate(request)
    status = await refusal_of(chain.validate(request))
    assert (status.code, status.reason, status.details.name) == (403, "Forbidden", "p")
    assert status.message == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes (volume "root"), '
        'privileged (container "c" must not set securityContext.privileged=true)'
    )
    assert request.warnings == []


@pytest.mark.parametrize("modes", [{}, {"enforce": "privileged"}, {"audit": "restricted"}], ids=str)
async def test_a_pod_may_be_anything_where_nothing_is_enforced(modes: dict[str, str]) -> None:
    request = creating(POD, BAD_POD)
    await a_plugin(**modes).validate(request)
    assert request.warnings == []


async def test_a_pod_is_warned_of_at_a_level_that_is_not_enforced() -> None:
    request = creating(POD, BAD_POD)
    await a_plugin(warn="baseline", warn_version="v1.30").validate(request)
    assert request.warnings == [f'would violate PodSecurity "baseline:v1.30": {HOST}']


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (DEPLOYMENT, {"spec": {"template": BAD_TEMPLATE}}),
        (a_kind("ReplicaSet", "replicasets", "apps"), {"spec": {"template": BAD_TEMPLATE}}),
        (a_kind("StatefulSet", "statefulsets", "apps"), {"spec": {"template": BAD_TEMPLATE}}),
        (a_kind("DaemonSet", "daemonsets", "apps"), {"spec": {"template": BAD_TEMPLATE}}),
        (a_kind("Job", "jobs", "batch"), {"spec": {"template": BAD_TEMPLATE}}),
        (a_kind("CronJob", "cronjobs", "batch"), {"spec": {"jobTemplate": {"spec": {"template": BAD_TEMPLATE}}}}),
        (a_kind("ReplicationController", "replicationcontrollers"), {"spec": {"template": BAD_TEMPLATE}}),
        (a_kind("PodTemplate", "podtemplates"), {"template": BAD_TEMPLATE}),
    ],
    ids=lambda value: value.kind if isinstance(value, Kind) else "",
)
async def test_a_workload_is_warned_of_and_never_refused(kind: Kind, content: dict[str, Any]) -> None:
    request = a_workload(kind, **content)
    await a_plugin(enforce="baseline").validate(request)
    assert request.warnings == [f'would violate PodSecurity "baseline:latest": {HOST}']
    quiet = a_workload(kind, **content)
    await a_plugin(enforce="baseline", warn="privileged").validate(quiet)
    assert quiet.warnings == []


async def test_a_workload_without_a_template_is_left_alone() -> None:
    request = a_workload(a_kind("ReplicationController", "replicationcontrollers"), spec={"replicas": 1})
    await a_plugin(enforce="restricted").validate(request)
    assert request.warnings == []


def with_image(image: str, *, name: str = "c", field: str = "containers") -> Object:
    pod = a_team_pod(hostNetwork=True)
    pod["spec"] = {**pod["spec"], "containers": [a_container()], field: [{"name": name, "image": image}]}
    return pod


@pytest.mark.parametrize(
    ("new", "old", "is_evaluated"),
    [
        pytest.param(BAD_POD, BAD_POD, False, id="the same"),
        pytest.param({**BAD_POD, "metadata": {"name": "p", "labels": {"a": "b"}}}, BAD_POD, False, id="a label"),
        pytest.param(with_image("new"), with_image("old"), True, id="an image"),
        pytest.param(
            with_image("new", field="initContainers"),
            with_image("old", field="initContainers"),
            True,
            id="an image of an init container",
        ),
        pytest.param(with_image("e", field="ephemeralContainers"), BAD_POD, True, id="an ephemeral container"),
        pytest.param(BAD_POD, with_image("e", field="ephemeralContainers"), False, id="no ephemeral container"),
        pytest.param(
            with_image("e", name="b", field="ephemeralContainers"),
            with_image("e", name="a", field="ephemeralContainers"),
            True,
            id="another ephemeral container",
        ),
    ],
)
async def test_an_update_is_evaluated_where_it_runs_something_else(
    new: Object, old: Object, is_evaluated: bool
) -> None:
    update = a_plugin(enforce="baseline").validate(updating(POD, new, old))
    if is_evaluated:
        assert HOST in (await refusal_of(update)).message
    else:
        await update


@pytest.mark.parametrize(
    ("kind", "subresource", "is_covered"),
    [
        (POD, "", True),
        (POD, "ephemeralcontainers", True),
        (POD, "resize", True),
        *((POD, name, False) for name in ("status", "binding", "eviction", "exec", "attach", "portforward", "log")),
        (NAMESPACE, "", True),
        (NAMESPACE, "status", False),
        (NAMESPACE, "finalize", False),
        (DEPLOYMENT, "", True),
        (DEPLOYMENT, "scale", False),
        (CONFIG_MAP, "", False),
    ],
)
def test_only_what_can_change_a_spec_is_evaluated(kind: Kind, subresource: str, is_covered: bool) -> None:
    request = creating(kind, {"metadata": {}})
    assert PodSecurity.validates.covers(kind.storage, subresource, request.operation) is is_covered


async def test_labels_that_an_older_server_took_enforce_the_strictest_level_on_pods() -> None:
    plugin = a_plugin(enforce="strict")
    status = await refusal_of(plugin.validate(creating(POD, BAD_POD)))
    assert 'violates PodSecurity "restricted:latest"' in status.message


async def test_a_pod_of_a_namespace_that_is_gone_is_no_longer_judged() -> None:
    plugin = PodSecurity(Memory(), PodSecurityMetrics(minor=36))
    status = await refusal_of(plugin.validate(creating(POD, BAD_POD)))
    assert status.code == 500
    assert status.message == 'Internal error occurred: failed to lookup namespace "team"'
    await plugin.validate(a_workload(DEPLOYMENT, spec={"template": BAD_TEMPLATE}))


def a_labelled(**modes: str) -> Object:
    return {"metadata": {"name": "team", "labels": labels(**modes)}}


async def test_a_namespace_with_labels_that_name_no_policy_is_refused() -> None:
    status = await refusal_of(a_plugin().validate(creating(NAMESPACE, a_labelled(enforce="strict", warn_version="2"))))
    assert (status.code, status.reason) == (422, "Invalid")
    assert status.message == (
        'Namespace "team" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: "
        'Invalid value: "2": must be "latest" or "v1.x"]'
    )


async def test_labels_that_were_wrong_before_may_stay_so_but_not_become_wrong_otherwise() -> None:
    plugin, old = a_plugin(), a_labelled(enforce="strict")
    await plugin.validate(updating(NAMESPACE, a_labelled(enforce="strict"), old))
    status = await refusal_of(plugin.validate(updating(NAMESPACE, a_labelled(enforce="stricter"), old)))
    assert status.code == 422


@pytest.mark.parametrize(
    ("old", "new", "is_checked"),
    [
        pytest.param({}, {"enforce": "baseline"}, True, id="a policy"),
        pytest.param({"enforce": "baseline"}, {"enforce": "restricted"}, True, id="a stricter policy"),
        pytest.param({"enforce": "baseline"}, {"enforce": "baseline", "enforce_version": "v1.9"}, True, id="a version"),
        pytest.param({"enforce": "restricted"}, {"enforce": "baseline"}, False, id="a weaker policy"),
        pytest.param({"enforce": "baseline"}, {"enforce": "privileged"}, False, id="none any more"),
        pytest.param({"enforce": "baseline"}, {"enforce": "baseline", "warn": "restricted"}, False, id="another mode"),
    ],
)
async def test_existing_pods_are_checked_where_a_policy_may_forbid_more(
    old: dict[str, str], new: dict[str, str], is_checked: bool
) -> None:
    request = updating(NAMESPACE, a_labelled(**new), a_labelled(**old))
    await a_plugin(("pods", BAD_POD)).validate(request)
    assert [warning.startswith("p: host namespaces") for warning in request.warnings[1:]] == [True] * is_checked


NAMESPACES: dict[str, dict[str, str]] = {
    "old": {"enforce": "baseline", "enforce_version": "v1.30", "audit": "restricted"},
    "future": {"enforce": "baseline", "enforce_version": "v1.99"},
    "warns": {"warn": "baseline"},
    "wrong": {"enforce": "strict"},
}


async def test_evaluations_and_errors_are_counted() -> None:
    registry = CollectorRegistry()
    namespaces = (a_namespace(name, **labels(**modes)) for name, modes in NAMESPACES.items())
    plugin = PodSecurity(Memory(a_namespace(), *namespaces), PodSecurityMetrics(registry, minor=36))
    for name in NAMESPACES:
        pod = {**BAD_POD, "metadata": {"name": "p", "namespace": name}}
        if name == "warns":
            await plugin.validate(creating(POD, pod))
        else:
            await refusal_of(plugin.validate(creating(POD, pod)))
    await plugin.validate(creating(POD, BAD_POD))
    text = generate_latest(registry).decode()
    common = 'request_operation="create",resource="pod",subresource=""'
    for decision, level, mode, version in (
        ("allow", "privileged", "enforce", "latest"),
        ("deny", "baseline", "enforce", "v1.30"),
        ("deny", "baseline", "enforce", "future"),
        ("deny", "restricted", "audit", "latest"),
        ("deny", "baseline", "warn", "latest"),
        ("deny", "restricted", "enforce", "latest"),
    ):
        series = f'decision="{decision}",mode="{mode}",policy_level="{level}",policy_version="{version}",{common}'
        assert f"pod_security_evaluations_total{{{series}}}" in text
    assert f'pod_security_errors_total{{fatal="false",{common}}} 1.0' in text


async def test_the_server_counts_evaluations_among_its_metrics(ask: Ask) -> None:
    status, _ = await ask(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "team", "labels": labels(enforce="baseline")}}
    )
    assert status == 201
    await ask("POST", "/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": "default"}})
    status, refusal = await ask("POST", "/api/v1/namespaces/team/pods", BAD_POD)
    assert (status, refusal["message"]) == (
        403,
        f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {HOST}',
    )
    text = (await ask("GET", "/metrics"))[1].decode()
    assert (
        'pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="latest",'
        'request_operation="create",resource="pod",subresource=""} 1.0'
    ) in text
