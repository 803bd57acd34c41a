"""LimitRanger: defaults, least and most, in a real server's words."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apiserver.admission.limit_ranger import LimitRanger
from tests.cluster.apiserver.admission.memory import (
    CLAIM,
    POD,
    Memory,
    a_container,
    a_team_pod,
    asking,
    creating,
    refusal_of,
    updating,
)

RANGE = {
    "type": "Container",
    "max": {"cpu": "1"},
    "min": {"cpu": "100m"},
    "default": {"cpu": "500m"},
    "defaultRequest": {"cpu": "200m", "memory": "64Mi"},
    "maxLimitRequestRatio": {"cpu": "3"},
}


def ranger(*limits: Any) -> LimitRanger:
    return LimitRanger(
        Memory(("limitranges", {"metadata": {"name": "l", "namespace": "team"}, "spec": {"limits": limits}}))
    )


async def test_containers_get_the_defaults_of_their_namespace() -> None:
    pod = a_team_pod(
        containers=[a_container("c"), a_container("d", **asking({"cpu": "300m"}))], initContainers=[a_container("e")]
    )
    plugin = ranger(RANGE)
    await plugin.mutate(creating(POD, pod))
    await plugin.validate(creating(POD, pod))
    assert pod["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container c; cpu limit for "
        "container c; memory request for container d; cpu limit for container d; cpu, memory request for init "
        "container e; cpu limit for init container e"
    }
    assert [each["resources"] for each in pod["spec"]["containers"]] == [
        {"limits": {"cpu": "500m"}, "requests": {"cpu": "200m", "memory": "64Mi"}},
        {"limits": {"cpu": "500m"}, "requests": {"cpu": "300m", "memory": "64Mi"}},
    ]


@pytest.mark.parametrize(
    ("limits", "container", "problem"),
    [
        pytest.param(
            [RANGE, {"type": "Pod", "max": {"cpu": "1500m"}}],
            asking({"cpu": "10m"}, {"cpu": "2"}),
            "[minimum cpu usage per Container is 100m, but request is 10m, maximum cpu usage per Container is 1, but "
            "limit is 2, cpu max limit to request ratio per Container is 3, but provided ratio is 200.000000, maximum "
            "cpu usage per Pod is 1500m, but limit is 2]",
            id="everything at once",
        ),
        pytest.param(
            [{"type": "Container", "min": {"memory": "1Gi"}}],
            asking(),
            "minimum memory usage per Container is 1Gi.  No request is specified",
            id="no request",
        ),
        pytest.param(
            [{"type": "Container", "max": {"memory": "1Gi"}}],
            asking(),
            "maximum memory usage per Container is 1Gi.  No limit is specified",
            id="no limit",
        ),
        pytest.param(
            [{"type": "Container", "max": {"cpu": "1"}}],
            asking({"cpu": "2"}, {"cpu": "1"}),
            "maximum cpu usage per Container is 1, but request is 2",
            id="a request past the limit",
        ),
        pytest.param(
            [{"type": "Container", "min": {"cpu": "1"}}],
            asking({"cpu": "1"}, {"cpu": "500m"}),
            "minimum cpu usage per Container is 1, but limit is 500m",
            id="a limit below",
        ),
        pytest.param(
            [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}],
            asking({}, {"cpu": "1"}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="ratio to nothing",
        ),
        pytest.param(
            [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}],
            asking({"cpu": "1"}),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            id="ratio of nothing",
        ),
        pytest.param([RANGE], asking({"cpu": "500m"}, {"cpu": "1"}), "", id="within"),
        pytest.param(
            [{"type": "Container", "max": {"example.com/gpu": "4"}}],
            asking({"example.com/gpu": "8"}, {"example.com/gpu": "8"}),
            "maximum example.com/gpu usage per Container is 4, but limit is 8",
            id="any resource",
        ),
    ],
)
async def test_a_pod_outside_a_range_is_refused(limits: Any, container: Any, problem: str) -> None:
    doing = ranger(*limits).validate(creating(POD, a_team_pod(containers=[a_container(**container)])))
    if not problem:
        await doing
    else:
        status = await refusal_of(doing)
        assert (status.code, status.message) == (403, f'pods "p" is forbidden: {problem}')


@pytest.mark.parametrize(
    ("init", "limit", "problem"),
    [
        pytest.param([a_container("i", **asking({"cpu": "3"}, {"cpu": "3"}))], "3", "", id="the largest one"),
        pytest.param(
            [a_container("s", restartPolicy="Always", **asking({"cpu": "3"}, {"cpu": "3"}))],
            "3",
            "maximum cpu usage per Pod is 3, but limit is 4",
            id="a sidecar counts with the rest",
        ),
    ],
)
async def test_a_pod_is_measured_as_a_whole(init: Any, limit: str, problem: str) -> None:
    pod = a_team_pod(containers=[a_container(**asking({"cpu": "1"}, {"cpu": "1"}))], initContainers=init)
    doing = ranger({"type": "Pod", "max": {"cpu": limit}}).validate(creating(POD, pod))
    if not problem:
        await doing
    else:
        assert (await refusal_of(doing)).message == f'pods "p" is forbidden: {problem}'


async def test_an_update_of_a_pod_is_not_measured_but_a_resize_is() -> None:
    plugin = ranger({"type": "Container", "max": {"cpu": "1"}})
    big = a_team_pod(containers=[a_container(**asking({"cpu": "2"}, {"cpu": "2"}))])
    await plugin.validate(updating(POD, big, a_team_pod()))
    status = await refusal_of(plugin.validate(updating(POD, big, a_team_pod(), subresource="resize")))
    assert "but limit is 2" in status.message


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        ("1Gi", "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
        ("9Gi", "maximum storage usage per PersistentVolumeClaim is 8Gi, but request is 9Gi"),
    ],
)
async def test_a_claim_outside_a_range_is_refused(size: str, problem: str) -> None:
    claim = {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": size}}}}
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "8Gi"}}
    status = await refusal_of(ranger(limit).validate(creating(CLAIM, claim)))
    assert status.message == f'persistentvolumeclaims "d" is forbidden: {problem}'
