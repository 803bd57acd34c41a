"""Upstream's webhooks, told to the API server by address: its manifests name Services, which nobody serves here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from bench.starting.clusters import StartFailed
from bench.trainjobs.programs import HOST
from bench.trainjobs.upstream import JOB_SET, TRAINER
from shoal.kube import HttpTransport, load_connection
from shoal.kube.admission.configuration import encoded_bundle
from shoal.kube.certificates import make_authority, make_serving
from shoal.kube.transport import Request

_DAY = timedelta(days=1)
_CERTIFICATES = Path("k8s-webhook-server") / "serving-certs"
_OF_JOB_SETS = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
_CHECKED = {
    "matchExpressions": [
        {"key": "trainer.kubeflow.org/webhook-validation", "operator": "NotIn", "values": ["disabled"]}
    ]
}
_TRAIN_JOBS = ("trainer.kubeflow.org", "v1alpha1", "trainjobs")
_RUNTIMES = ("trainer.kubeflow.org", "v1alpha1", "trainingruntimes")
_CLUSTER_RUNTIMES = ("trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes")
_JOB_SETS = ("jobset.x-k8s.io", "v1alpha2", "jobsets")
_PODS = ("", "v1", "pods")
_MADE, _CHANGED = ["CREATE"], ["CREATE", "UPDATE"]


def make_certificates(folder: Path) -> bytes:
    """Lays a certificate where controller-runtime looks for one under a TMPDIR; gives who signed it."""
    now = datetime.now(UTC)
    authority = make_authority("bench", now=now, lifetime=_DAY)
    pair = make_serving(authority, [HOST], now=now, lifetime=_DAY)
    place = folder / _CERTIFICATES
    place.mkdir(parents=True)
    (place / "tls.crt").write_bytes(pair.certificate)
    (place / "tls.key").write_bytes(pair.key)
    return authority.certificate


def register(kubeconfig: Path, ports: Mapping[str, int], authority: bytes) -> None:
    """Tells the API server of all webhooks, by the port of each program."""
    asyncio.run(_register(kubeconfig, configurations(ports, authority)))


def configurations(ports: Mapping[str, int], authority: bytes) -> list[dict[str, Any]]:
    """The webhooks of upstream's manifests: the same names, paths, rules and selectors."""

    def entry(
        program: str, name: str, path: str, of: tuple[str, str, str], operations: list[str], **more: Any
    ) -> dict[str, Any]:
        group, version, plural = of
        rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": operations}
        url = f"https://{HOST}:{ports[program]}{path}"
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": encoded_bundle(authority)},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "rules": [rule],
            **more,
        }

    trainer = "trainer-kubeflow-org-v1alpha1"
    return [
        _configuration(
            "Mutating",
            "defaulter.trainer.kubeflow.org",
            entry(
                TRAINER, "defaulter.trainjob.trainer.kubeflow.org", f"/mutate-{trainer}-trainjob", _TRAIN_JOBS, _CHANGED
            ),
        ),
        _configuration(
            "Validating",
            "validator.trainer.kubeflow.org",
            *(
                entry(
                    TRAINER,
                    f"validator.{kind}.trainer.kubeflow.org",
                    f"/validate-{trainer}-{kind}",
                    of,
                    _CHANGED,
                    **more,
                )
                for kind, of, more in (
                    ("clustertrainingruntime", _CLUSTER_RUNTIMES, {"objectSelector": _CHECKED}),
                    ("trainingruntime", _RUNTIMES, {"objectSelector": _CHECKED}),
                    ("trainjob", _TRAIN_JOBS, {}),
                )
            ),
        ),
        _configuration(
            "Mutating",
            "jobset-mutating-webhook-configuration",
            entry(JOB_SET, "mjobset.kb.io", "/mutate-jobset-x-k8s-io-v1alpha2-jobset", _JOB_SETS, _MADE),
            entry(JOB_SET, "mpod.kb.io", "/mutate--v1-pod", _PODS, _MADE, objectSelector=_OF_JOB_SETS),
        ),
        _configuration(
            "Validating",
            "jobset-validating-webhook-configuration",
            entry(JOB_SET, "vjobset.kb.io", "/validate-jobset-x-k8s-io-v1alpha2-jobset", _JOB_SETS, _CHANGED),
            entry(JOB_SET, "vpod.kb.io", "/validate--v1-pod", _PODS, _MADE, objectSelector=_OF_JOB_SETS),
        ),
    ]


def _configuration(kind: str, name: str, *webhooks: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


async def _register(kubeconfig: Path, bodies: list[dict[str, Any]]) -> None:
    transport = HttpTransport(load_connection(kubeconfig))
    try:
        for body in bodies:
            path = f"/apis/{body['apiVersion']}/{body['kind'].lower()}s"
            asked = Request(method="POST", path=path, body=msgspec.json.encode(body), timeout=30)
            answer = await transport.send(asked)
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise StartFailed(f"{body['metadata']['name']} was not registered: {answer.body[:500]!r}")
    finally:
        await transport.close()
