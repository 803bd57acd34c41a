"""The objects by which an API server learns of our webhooks, made from the webhooks themselves.

What a server serves and what the API server is told to call can thus never drift apart. The functions are pure; their
results are plain values to be applied, or printed into a chart.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from shoal.api.meta.objects import Document
from shoal.api.meta.resource import Resource
from shoal.kube.admission.conversion import CONVERT_PATH
from shoal.kube.admission.webhooks import Rule, Webhook, WebhookKind

MUTATING_CONFIGURATIONS = Resource(
    type=Document,
    group="admissionregistration.k8s.io",
    version="v1",
    kind="MutatingWebhookConfiguration",
    plural="mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_CONFIGURATIONS = Resource(
    type=Document,
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    type=Document,
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)

Content: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ServiceEndpoint:
    """Our server behind a Service of the cluster."""

    name: str
    namespace: str
    port: int = 443

    def client_config(self, path: str) -> Content:
        """How to call one path."""
        return {"service": {"name": self.name, "namespace": self.namespace, "port": self.port, "path": path}}


@dataclass(frozen=True)
class UrlEndpoint:
    """Our server at an address that the API server reaches by itself: ``https://127.0.0.1:9443``."""

    base: str

    def client_config(self, path: str) -> Content:
        """How to call one path."""
        return {"url": self.base.rstrip("/") + path}


Endpoint: TypeAlias = ServiceEndpoint | UrlEndpoint


def mutating_configuration(
    name: str,
    webhooks: Iterable[Webhook],
    endpoint: Endpoint,
    *,
    authorities: bytes = b"",
    labels: Mapping[str, str] | None = None,
) -> Content:
    """The MutatingWebhookConfiguration of all mutating webhooks among these."""
    return _configuration(MUTATING_CONFIGURATIONS, "mutating", name, webhooks, endpoint, authorities, labels)


def validating_configuration(
    name: str,
    webhooks: Iterable[Webhook],
    endpoint: Endpoint,
    *,
    authorities: bytes = b"",
    labels: Mapping[str, str] | None = None,
) -> Content:
    """The ValidatingWebhookConfiguration of all validating webhooks among these."""
    return _configuration(VALIDATING_CONFIGURATIONS, "validating", name, webhooks, endpoint, authorities, labels)


def conversion_section(endpoint: Endpoint, *, authorities: bytes = b"") -> Content:
    """The ``spec.conversion`` of a CustomResourceDefinition whose versions we convert."""
    return {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": _client_config(endpoint, CONVERT_PATH, authorities),
        },
    }


def encoded_bundle(authorities: bytes) -> str:
    """A bundle as ``caBundle`` holds it."""
    return base64.b64encode(authorities).decode()


def _configuration(
    resource: Resource[Document],
    kind: WebhookKind,
    name: str,
    webhooks: Iterable[Webhook],
    endpoint: Endpoint,
    authorities: bytes,
    labels: Mapping[str, str] | None,
) -> Content:
    metadata: Content = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "webhooks": [_entry(each, endpoint, authorities) for each in webhooks if each.kind == kind],
    }


def _entry(webhook: Webhook, endpoint: Endpoint, authorities: bytes) -> Content:
    entry: Content = {
        "name": webhook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client_config(endpoint, webhook.path, authorities),
        "rules": [_rule(rule) for rule in webhook.rules],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": webhook.match_policy,
        "sideEffects": webhook.side_effects,
        "timeoutSeconds": webhook.timeout_seconds,
    }
    if webhook.namespace_selector is not None:
        entry["namespaceSelector"] = dict(webhook.namespace_selector)
    if webhook.object_selector is not None:
        entry["objectSelector"] = dict(webhook.object_selector)
    if webhook.match_conditions:
        entry["matchConditions"] = [dict(condition) for condition in webhook.match_conditions]
    if webhook.kind == "mutating":
        entry["reinvocationPolicy"] = webhook.reinvocation_policy
    return entry


def _rule(rule: Rule) -> Content:
    return {
        "apiGroups": [rule.group],
        "apiVersions": [rule.version],
        "resources": [rule.resource],
        "operations": list(rule.operations),
        "scope": rule.scope,
    }


def _client_config(endpoint: Endpoint, path: str, authorities: bytes) -> Content:
    config = endpoint.client_config(path)
    return config | ({"caBundle": encoded_bundle(authorities)} if authorities else {})
