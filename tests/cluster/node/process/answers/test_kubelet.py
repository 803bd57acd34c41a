"""What the node's own agent refuses, in a kubelet's words, and what it tells of itself."""

from __future__ import annotations

import asyncio
import os
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.answers.kubelet import no_log
from shoal.kube.errors import ApiError
from shoal.kube.streams import follow_logs
from tests.cluster.node.process.answers.conftest import Household
from tests.support.builders.pods import pod_manifest

UPGRADE = "Upgrade request required: connect by WebSocket"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "is waiting to start: ContainerCreating"),
        ({"waiting": {"reason": "PodInitializing"}}, "is waiting to start: PodInitializing"),
        ({"waiting": {"reason": "ErrImagePull"}}, "is waiting to start: image can't be pulled"),
        ({"waiting": {"reason": "ImagePullBackOff"}}, "is waiting to start: trying and failing to pull image"),
        ({"terminated": {"exitCode": 128, "reason": "StartError"}}, "is terminated"),
    ],
    ids=["untold", "waiting", "no-image", "still-no-image", "never-ran"],
)
def test_a_container_without_a_log_says_why(state: dict[str, Any], words: str) -> None:
    statuses = [{"name": "main", "state": state}] if state else []
    pod = msgspec.convert(pod_manifest("web", status={"containerStatuses": statuses}), PodDetails)
    refused = no_log(pod, "main", previous=False)
    assert (refused.status, refused.message) == (400, f'container "main" in pod "web" {words}')


async def test_what_is_not_there_is_refused(household: Household) -> None:
    await household.start("web", "sleep", "1000")
    proxy = "/api/v1/nodes/node-a/proxy"
    for asked, told in (
        ("containerLogs/default/absent/main", (404, "NotFound", 'pod "absent" does not exist')),
        ("containerLogs/default/web/other", (404, "NotFound", 'container "other" not found in pod "web"')),
        ("exec/default/absent/main", (404, "NotFound", "pod does not exist")),
        ("exec/default/web/another-uid/main", (404, "NotFound", "pod does not exist")),
        ("portForward/default/absent", (404, "NotFound", "pod does not exist")),
        ("exec/default/web/main?command=true&output=1", (400, "BadRequest", UPGRADE)),
        ("portForward/default/web", (400, "BadRequest", UPGRADE)),
    ):
        path, _, query = asked.partition("?")
        assert await household.cluster.refusal(f"{proxy}/{path}", **dict(parse_qsl(query))) == told


async def test_a_silent_container_is_followed_and_one_that_restarts_is_followed_to_its_end(
    household: Household,
) -> None:
    await household.start("web", "sh", "-c", "read line; echo $line", has_stdin=True, closes_stdin=True)
    lines = follow_logs(household.transport, namespace="default", pod="web", timeout=5)
    first = asyncio.ensure_future(anext(lines))
    stdin = await household.runtime.stdin(household.specs[household.pods["web"].metadata.uid][-1].id)
    with os.fdopen(stdin, "wb") as writing:
        writing.write(b"said\n")
    async with asyncio.timeout(10):
        assert await first == b"said"
        assert [line async for line in lines] == []


async def test_a_log_that_was_asked_for_too_soon_is_refused(household: Household) -> None:
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": "node-a"}
    body = {"metadata": {"name": "slow"}, "spec": {**spec, "automountServiceAccountToken": False}}
    code, pod = await household.cluster.call("POST", "/api/v1/namespaces/default/pods", body)
    assert code == 201
    household.pods["slow"] = msgspec.convert(pod, PodDetails, strict=False)
    with pytest.raises(ApiError, match='container "main" in pod "slow" is waiting to start: ContainerCreating'):
        await anext(follow_logs(household.transport, namespace="default", pod="slow"))


async def test_the_agent_tells_of_its_pods_and_what_they_use(household: Household) -> None:
    await household.start("web", "sleep", "1000")
    proxy = "/api/v1/nodes/node-a/proxy"
    code, pods = await household.cluster.call("GET", f"{proxy}/pods")
    assert (code, [pod["metadata"]["name"] for pod in pods["items"]]) == (200, ["web"])
    code, stats = await household.cluster.call("GET", f"{proxy}/stats/summary")
    assert (code, stats["node"]["memory"]["workingSetBytes"]) == (200, 1 << 20)
