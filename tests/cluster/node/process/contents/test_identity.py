"""Who a container runs as, what it may do and what it may use."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.node.process.contents import ConfigProblem
from shoal.cluster.node.process.contents.identity import (
    ALL_CAPABILITIES,
    USUAL_CAPABILITIES,
    capabilities_of,
    common_user,
    ids_of,
    may_gain_privileges,
)
from shoal.cluster.node.process.contents.limits import PROCESSES, limits_of, most_processes
from shoal.cluster.node.process.runtime.protocol import Ids, Limits
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.contents.conftest import a_container


def ids(
    pod: dict[str, Any] | None = None,
    container: dict[str, Any] | None = None,
    *,
    image_user: int | None = None,
    group_of_user: int | None = None,
    has_all_ids: bool = True,
) -> Ids:
    return ids_of(
        a_local_pod(securityContext=pod or {}),
        a_container(securityContext=container or {}),
        image_user=image_user,
        group_of_user=group_of_user,
        has_all_ids=has_all_ids,
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Ids()),
        ({"pod": {"runAsUser": 5}}, Ids(user=5)),
        ({"pod": {"runAsUser": 5, "runAsGroup": 6}, "container": {"runAsUser": 7}}, Ids(user=7, group=6)),
        ({"container": {"runAsUser": 0}, "pod": {"runAsUser": 5}}, Ids()),
        ({"image_user": 9, "group_of_user": 10}, Ids(user=9, group=10)),
        ({"image_user": 9, "pod": {"runAsUser": 5, "runAsGroup": 0}, "group_of_user": 10}, Ids(user=5)),
        ({"pod": {"fsGroup": 20, "supplementalGroups": [30, 20]}}, Ids(groups=[20, 30])),
        ({"pod": {"fsGroup": 20, "supplementalGroups": [30]}, "has_all_ids": False}, Ids()),
    ],
)
def test_ids_come_from_the_container_then_the_pod_then_the_image(given: dict[str, Any], expected: Ids) -> None:
    assert ids(**given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"pod": {"runAsNonRoot": True}},
            'container has runAsNonRoot and image will run as root (pod: "web_team(u-1)", container: main)',
        ),
        (
            {"pod": {"runAsUser": 0}, "container": {"runAsNonRoot": True}},
            'container\'s runAsUser breaks non-root policy (pod: "web_team(u-1)", container: main)',
        ),
    ],
)
def test_a_container_that_must_not_be_root_is_not(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        ids(**given)
    assert (caught.value.reason, caught.value.message) == ("CreateContainerConfigError", message)


@pytest.mark.parametrize(
    "given",
    [
        {"pod": {"runAsNonRoot": True, "runAsUser": 5}},
        {"pod": {"runAsNonRoot": True}, "image_user": 5},
        {"pod": {"runAsNonRoot": True}, "container": {"runAsNonRoot": False}},
    ],
)
def test_a_container_that_is_not_root_may_say_so(given: dict[str, Any]) -> None:
    ids(**given)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, USUAL_CAPABILITIES),
        ({"privileged": True}, set(ALL_CAPABILITIES)),
        ({"capabilities": {"add": ["CAP_NET_ADMIN", "sys_ptrace"]}}, USUAL_CAPABILITIES | {"NET_ADMIN", "SYS_PTRACE"}),
        ({"capabilities": {"drop": ["ALL"]}}, set()),
        ({"capabilities": {"drop": ["all"], "add": ["NET_BIND_SERVICE"]}}, {"NET_BIND_SERVICE"}),
        ({"capabilities": {"add": ["ALL"], "drop": ["SYS_ADMIN"]}}, set(ALL_CAPABILITIES) - {"SYS_ADMIN"}),
        ({"capabilities": {"drop": ["CHOWN"]}}, USUAL_CAPABILITIES - {"CHOWN"}),
    ],
)
def test_capabilities_are_the_usual_ones_more_or_less(context: dict[str, Any], expected: set[str]) -> None:
    found = capabilities_of(a_container(securityContext=context))
    assert set(found) == set(expected)
    assert found == [name for name in ALL_CAPABILITIES if name in expected]


def test_a_capability_that_nobody_knows_is_named() -> None:
    with pytest.raises(ConfigProblem, match='unknown capability "CAP_FLY"'):
        capabilities_of(a_container(securityContext={"capabilities": {"add": ["FLY"]}}))


def test_privileges_are_gained_unless_that_is_forbidden() -> None:
    assert may_gain_privileges(a_container())
    assert not may_gain_privileges(a_container(securityContext={"allowPrivilegeEscalation": False}))


@pytest.mark.parametrize(("users", "expected"), [([5, 5], 5), ([5, 6], None), ([5, None], None), ([None, None], None)])
def test_a_pod_has_one_user_where_all_containers_agree(users: list[int | None], expected: int | None) -> None:
    containers = [
        {"name": f"c{index}", "securityContext": {} if user is None else {"runAsUser": user}}
        for index, user in enumerate(users)
    ]
    assert common_user(a_local_pod(*containers)) == expected


@pytest.mark.parametrize(
    ("resources", "shared", "expected"),
    [
        ({}, {}, Limits(cpu_shares=2, processes=PROCESSES)),
        (
            {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "1Gi"}},
            {},
            Limits(cpu_shares=256, cpu_cores=1.5, memory_bytes=1 << 30, processes=PROCESSES),
        ),
        ({"limits": {"cpu": 2}}, {}, Limits(cpu_shares=2048, cpu_cores=2.0, processes=PROCESSES)),
        (
            {"requests": {"cpu": "1"}},
            {"limits": {"cpu": "2", "memory": "64Mi"}},
            Limits(cpu_shares=1024, cpu_cores=2.0, memory_bytes=64 << 20, processes=PROCESSES),
        ),
    ],
)
def test_resources_are_limits_in_the_kernels_units(
    resources: dict[str, Any], shared: dict[str, Any], expected: Limits
) -> None:
    assert limits_of(a_local_pod(resources=shared), a_container(resources=resources)) == expected


@pytest.mark.parametrize(("cores", "processes"), [(1, 4096), (2, 4096), (8, 8192), (16, 16384), (256, 16384)])
def test_a_container_may_have_more_processes_on_a_larger_machine(cores: int, processes: int) -> None:
    assert most_processes(cores) == processes
