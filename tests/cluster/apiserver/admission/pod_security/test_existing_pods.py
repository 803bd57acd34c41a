"""What the pods of a namespace violate of a policy that is about to be enforced."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import count

from shoal.cluster.apiserver.admission.pod_security.existing_pods import MOST_PODS, warnings_for
from shoal.cluster.apiserver.admission.pod_security.policy import Level, LevelVersion, Version
from shoal.cluster.apiserver.kinds.kind import Object
from tests.support.builders.pods import pod_manifest

BASELINE = LevelVersion(Level.BASELINE, Version(30))
HEADLINE = 'existing pods in namespace "team" violate the new PodSecurity enforce level "baseline:v1.30"'


def a_bad_pod(name: str, owner: str = "") -> Object:
    reference = {"uid": owner, "controller": True} if owner else None
    return pod_manifest(name, owner=reference, hostNetwork=True)


async def warnings(pods: Iterable[Object], total: int, clock: Iterator[float] | None = None) -> list[str]:
    times = clock or count(0, 0.0)
    return await warnings_for(pods, count=total, namespace="team", policy=BASELINE, clock=lambda: next(times))


async def test_pods_that_violate_the_same_checks_are_one_warning_with_the_first_name() -> None:
    pods = [
        a_bad_pod("c"),
        a_bad_pod("a"),
        pod_manifest("alone", hostPID=True, containers=[{"name": "x", "securityContext": {"privileged": True}}]),
        a_bad_pod("b"),
        pod_manifest("safe"),
        pod_manifest("mounts", volumes=[{"name": "v", "hostPath": {}}]),
        pod_manifest("mounts-too", volumes=[{"name": "w", "hostPath": {}}]),
    ]
    assert await warnings(pods, len(pods)) == [
        HEADLINE,
        "a (and 2 other pods): host namespaces",
        "alone: host namespaces, privileged",
        "mounts (and 1 other pod): hostPath volumes",
    ]


async def test_pods_that_violate_nothing_are_not_spoken_of() -> None:
    assert await warnings([pod_manifest("safe")], 1) == []
    assert await warnings([], 0) == []


async def test_so_many_pods_are_checked_and_no_more() -> None:
    total = MOST_PODS + 500
    said = await warnings((a_bad_pod(f"p{number:05}") for number in range(total)), total)
    assert said == [
        f"new PodSecurity enforce level only checked against the first {MOST_PODS} of {total} existing pods",
        HEADLINE,
        f"p00000 (and {MOST_PODS - 1} other pods): host namespaces",
    ]


async def test_a_pod_of_each_controller_goes_before_their_replicas() -> None:
    replicas = [a_bad_pod(f"r{number:05}", owner="one") for number in range(MOST_PODS + 10)]
    others = [pod_manifest(f"s{number}", hostPID=True, volumes=[{"name": "v", "hostPath": {}}]) for number in range(3)]
    said = await warnings([*replicas, *others], len(replicas) + len(others))
    assert said[2:] == [
        f"r00000 (and {MOST_PODS - 4} other pods): host namespaces",
        "s0 (and 2 other pods): host namespaces, hostPath volumes",
    ]


async def test_checking_ends_after_a_second_and_says_how_far_it_came() -> None:
    pods = [a_bad_pod(f"p{number:05}") for number in range(1_000)]
    said = await warnings(pods, len(pods), clock=count(0, 0.4))
    assert said[0] == "new PodSecurity enforce level only checked against the first 150 of 1000 existing pods"
    assert said[2] == "p00000 (and 149 other pods): host namespaces"


async def test_other_requests_have_their_turn_meanwhile() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await warnings((a_bad_pod(f"p{number}") for number in range(1_000)), 1_000)
    task.cancel()
    assert turns >= 10
