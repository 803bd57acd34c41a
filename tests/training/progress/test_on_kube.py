"""Whose a token is, as a real API server says."""

from __future__ import annotations

from shoal.cluster.kubernetes import RealKubernetes
from shoal.training.plugins.train_job_status import audience
from shoal.training.progress.tokens import Tokens
from tests.support.clusters.client import client_to


async def test_a_token_is_good_for_its_train_job_alone(kube: RealKubernetes, namespace: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    kube.admin.request("POST", accounts, {"metadata": {"name": "trainer"}})
    own = audience(namespace, "demo")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [own]}}
    token = kube.admin.request("POST", f"{accounts}/trainer/token", request)["status"]["token"]
    async with client_to(kube.kubeconfig) as client:
        tokens = Tokens(client)
        assert await tokens.namespace(token, own) == namespace
        assert await tokens.namespace(token, audience(namespace, "other")) == ""
        assert await tokens.namespace(f"{token}x", own) == ""
