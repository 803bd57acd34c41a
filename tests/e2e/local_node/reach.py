"""What the API server is asked to reach on a node: a webhook that runs as a pod, and pods behind proxies."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp

from tests.e2e.local_node.scenes import PORT, Object, Scene, a_container, a_pod_of, a_pod_spec, program
from tests.support.network.sessions import https_session
from tests.support.network.tls import Authority

WEBHOOK_PORT = 8443
WEBHOOK = "guard"


def a_webhook_pod(labels: dict[str, str] | None = None) -> Object:
    """A pod that serves an admission webhook with the certificate of the Secret ``guard``."""
    certificate = [{"name": "certificate", "mountPath": "/certificate"}]
    ready = {"tcpSocket": {"port": "https"}, "periodSeconds": 1}
    ports = [{"name": "https", "containerPort": WEBHOOK_PORT}]
    command = program("admit", str(WEBHOOK_PORT), "/certificate")
    container = a_container(command, volumeMounts=certificate, readinessProbe=ready, ports=ports)
    spec = a_pod_spec(container, volumes={"certificate": {"secret": {"secretName": WEBHOOK}}})
    return a_pod_of(WEBHOOK, spec, labels or {"app": WEBHOOK})


def a_webhook_service() -> Object:
    """A Service in front of the webhook, by the name of its port."""
    spec = {"selector": {"app": WEBHOOK}, "ports": [{"port": 443, "targetPort": "https"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": WEBHOOK}, "spec": spec}


@contextmanager
def a_guarded_namespace(scene: Scene, *, names: tuple[str, ...] | None = None) -> Iterator[None]:
    """Registers the webhook for the ConfigMaps of the scene; ``names`` are those in its certificate."""
    authority = Authority()
    issued = authority.issue(WEBHOOK, hosts=names or (f"{WEBHOOK}.{scene.namespace}.svc",))
    pair = {"tls.crt": issued.chain.decode(), "tls.key": issued.key.decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": WEBHOOK}, "stringData": pair}
    scene.apply(secret, a_webhook_pod(), a_webhook_service())
    scene.until("condition=Ready", f"pod/{WEBHOOK}")
    service = {"name": WEBHOOK, "namespace": scene.namespace, "path": "/admit"}
    bundle = base64.b64encode(authority.pem).decode()
    configuration = f"{WEBHOOK}-{scene.namespace}"
    hook = {
        "name": "guard.shoal.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "clientConfig": {"service": service, "caBundle": bundle},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
    }
    scene.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": configuration},
            "webhooks": [hook],
        }
    )
    try:
        yield
    finally:
        scene.kubectl("delete", "validatingwebhookconfiguration", configuration)


def make_config_map(scene: Scene, name: str, verdict: str) -> tuple[int, str]:
    """Tries to make a ConfigMap with a label; the exit code of kubectl, and what it complained about."""
    manifest = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{verdict: '{verdict}'}}}}}}"
    done = scene.node.kubectl.run("create", "-f", "-", namespace=scene.namespace, stdin=manifest, timeout=60)
    return done.returncode, done.stderr


def a_conversing_pod(name: str = "web", **more: Any) -> Object:
    """A pod that shows what reaches it over HTTP."""
    ready = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    ports = [{"name": "http", "containerPort": PORT}]
    container = a_container(program("converse", str(PORT)), readinessProbe=ready, ports=ports)
    return a_pod_of(name, a_pod_spec(container, **more), {"app": name})


def a_web_service(name: str = "web") -> Object:
    """A Service in front of such a pod."""
    spec = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def proxied(scene: Scene, what: str) -> str:
    """The path of the proxy of a conversing pod ``web``, or of the Service in front of it, once it answers."""
    scene.apply(a_conversing_pod(), a_web_service())
    scene.until("condition=Ready", "pod/web")
    path = f"/api/v1/namespaces/{scene.namespace}/{what}/proxy"
    scene.until_true(lambda: scene.try_kubectl("get", "--raw", f"{path}/x").returncode == 0, "the proxy to answer")
    return path


@asynccontextmanager
async def a_session(scene: Scene) -> AsyncIterator[aiohttp.ClientSession]:
    """HTTP to the API server as its administrator, by a token."""
    shoal = scene.node.shoal
    pki = shoal.data_dir / "pki"
    trusting = ssl.create_default_context(cafile=pki / "ca.crt")
    async with https_session(
        trusting,
        base_url=shoal.endpoints()["api"],
        headers={"Authorization": f"Bearer {(pki / 'admin.token').read_text().strip()}"},
        timeout=aiohttp.ClientTimeout(total=60),
    ) as session:
        yield session
