"""Bindings, webhooks and signing requests for their tables."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from tests.cluster.apiserver.tables.cases import Case, Object, condition, named


def access_cases(prefix: str) -> Iterator[Case]:
    group = "rbac.authorization.k8s.io"
    subjects = [
        {"kind": "User", "name": "u", "apiGroup": group},
        {"kind": "Group", "name": "g", "apiGroup": group},
        {"kind": "ServiceAccount", "name": "s", "namespace": "x"},
        {"kind": "User", "name": "v", "apiGroup": group},
    ]
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "view"}
    yield Case(f"{group}/v1", "RoleBinding", named("binding", roleRef=role, subjects=subjects))
    yield Case(f"{group}/v1", "ClusterRoleBinding", named(f"{prefix}-binding", roleRef=role))
    yield Case(f"{group}/v1", "ClusterRoleBinding", named(f"{prefix}-some", roleRef=role, subjects=subjects[:3]))
    yield Case(f"{group}/v1", "Role", named("role", rules=[]))
    yield Case(f"{group}/v1", "ClusterRole", named(f"{prefix}-role", rules=[]))
    hook = {
        "clientConfig": {"url": "https://127.0.0.1:1"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "rules": [{"apiGroups": ["none.test"], "apiVersions": ["v1"], "resources": ["none"], "operations": ["CREATE"]}],
    }
    hooks = [{**hook, "name": f"{each}.hook.test"} for each in "ab"]
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        yield Case("admissionregistration.k8s.io/v1", kind, named(f"{prefix}-hooks", webhooks=hooks))
        yield Case("admissionregistration.k8s.io/v1", kind, named(f"{prefix}-none"))

    def signing(name: str, *kinds: str, issued: bool = False, **spec: Any) -> Case:
        made = {
            "request": _base64(_SIGNING_REQUEST),
            "signerName": "tables.test/signer",
            "usages": ["digital signature"],
            **spec,
        }
        body = named(f"{prefix}-{name}", spec=made)
        decided = [condition(kind, reason="Tried", message="m") for kind in kinds]
        patches = {}
        if approvals := [each for each in decided if each["type"] != "Failed"]:
            patches["approval"] = {"status": {"conditions": approvals}}
        status: Object = {"conditions": decided} if "Failed" in kinds else {}
        if issued:
            status["certificate"] = _base64(_CERTIFICATE)
        if status:
            patches["status"] = {"status": status}
        return Case("certificates.k8s.io/v1", "CertificateSigningRequest", body, patches)

    yield signing("pending")
    yield signing("lasting", expirationSeconds=86400 * 3 + 3600)
    yield signing("approved", "Approved")
    yield signing("denied", "Denied")
    yield signing("failed", "Approved", "Failed")
    yield signing("issued", "Approved", issued=True)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_SIGNING_REQUEST = """\
-----BEGIN CERTIFICATE REQUEST-----
MIHMMHMCAQAwETEPMA0GA1UEAwwGdGFibGVzMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAE19m5HIlhtBbJrcOzdAmxGufq/7EFBihcm8Xmk7ksVOXIzUTRTfE6EeLj
HPZWFPeMj1jZRYVe4WIDY5hSxz/1hKAAMAoGCCqGSM49BAMCA0kAMEYCIQCnXavE
eZCdeSPnj0XPw5c6M/fviNh4/n96dfz8bA1pCAIhANYaNEah9pryl2A2Ozu85XiN
syTnuGdqkEODrN6onByL
-----END CERTIFICATE REQUEST-----
"""

_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUZkMXz+l11zaBX+ATYsNx9Hs3n2owCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGdGFibGVzMCAXDTI2MTExNTExNTQ1NVoYDzIxMjYxMDIyMTE1
NDU1WjARMQ8wDQYDVQQDDAZ0YWJsZXMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASteEGABd5WQ++B6RScv3XBCrqdC7phmsfwSem7Y5SUUX0jalCQY9zeBSKxUgQD
jroOOeK6kIsgK7BXe8eWpw29o1MwUTAdBgNVHQ4EFgQUHst8G/Av9wy0w9MJGCj7
5HpS5WAwHwYDVR0jBBgwFoAUHst8G/Av9wy0w9MJGCj75HpS5WAwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAqgdT9qWBIAAgHvC+NG5H+NRxTJxl
T4BO94E//yE5KsgCIGndrN579u4kb9Ew6i4Ga5GYSGNd8XPH/ghE/RA4qt63
-----END CERTIFICATE-----
"""
