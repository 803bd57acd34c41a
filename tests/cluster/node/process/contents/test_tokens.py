"""Tokens of pods on a real (embedded) API server."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest

from shoal.api.core import (
    SERVICE_ACCOUNTS,
)
from shoal.cluster.node.process.contents import NodeFacts, VolumeProblem
from tests.cluster.node.process.contents.conftest import (
    ADDRESS,
    Node,
    contents_of,
    make_config,
    spec_of,
)
from tests.support.clusters.in_process import Cluster

TOKEN_PATH = "var/run/secrets/kubernetes.io/serviceaccount"


async def test_a_pod_has_a_token_bound_to_it_and_it_is_renewed_in_time(cluster: Cluster, tmp_path: Path) -> None:
    clock = [time.time()]
    async with contents_of(cluster, tmp_path / "data", NodeFacts(), clock=lambda: clock[0]) as node:
        await make_config(node, "kube-root-ca.crt", **{"ca.crt": "CERTIFICATE"})
        pod = await node.add_pod(token=True)
        volume = next(one.name for one in pod.spec.volumes)
        await node.contents.prepare(pod, address=ADDRESS)
        spec = await spec_of(node, pod)
        folder = Path(next(bind.source for bind in spec.binds if bind.target == f"/{TOKEN_PATH}"))
        assert folder == node.volume(pod, volume)
        assert (folder / "ca.crt").read_text() == "CERTIFICATE"
        assert (folder / "namespace").read_text() == "default"
        first = (folder / "token").read_text()
        payload = base64.urlsafe_b64decode(first.split(".")[1] + "==").decode()
        assert pod.metadata.uid in payload
        assert "system:serviceaccount:default:default" in payload

        due = node.contents.next_refresh(pod)
        assert due is not None
        assert due == pytest.approx(0.8 * 3607, abs=5)
        await node.contents.refresh(pod)
        assert (folder / "token").read_text() == first
        clock[0] += due + 1
        assert node.contents.next_refresh(pod) == 0
        await node.contents.refresh(pod)
        assert (folder / "token").read_text() != first


async def test_a_token_that_cannot_be_renewed_yet_stays_while_it_is_good(cluster: Cluster, tmp_path: Path) -> None:
    clock = [time.time()]
    async with contents_of(cluster, tmp_path / "data", NodeFacts(), clock=lambda: clock[0]) as node:
        await make_config(node, "kube-root-ca.crt", **{"ca.crt": "CERTIFICATE"})
        pod = await node.add_pod(token=True)
        await node.contents.prepare(pod, address=ADDRESS)
        token = node.volume(pod, pod.spec.volumes[0].name) / "token"
        first = token.read_text()
        await cluster.client.delete(SERVICE_ACCOUNTS, "default", "default")
        clock[0] += 3000
        await node.contents.refresh(pod)
        assert token.read_text() == first
        again = node.contents.next_refresh(pod)
        assert again is not None
        assert 0 < again <= 60, "it is tried again, but not at once"
        clock[0] += 3000
        with pytest.raises(VolumeProblem, match="expired and refresh failed"):
            await node.contents.refresh(pod)


async def test_a_pod_without_tokens_has_nothing_to_renew(node: Node) -> None:
    pod = await node.add_pod()
    await node.contents.prepare(pod, address=ADDRESS)
    assert node.contents.next_refresh(pod) is None
