"""What API servers are told of the webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.gangs.admission import gang_webhooks, webhook_configurations
from shoal.gangs.backends import Backends
from shoal.gangs.settings import Authorizing, GangSettings
from shoal.kube.admission import ServiceEndpoint, UrlEndpoint
from tests.gangs.admission.verdicts import nothing_there

GUARDED = GangSettings(authorizing=Authorizing(is_enabled=True, operator_user="operator"))
HERE = ServiceEndpoint(name="grove-operator", namespace="grove-system")


def configurations(settings: GangSettings, endpoint: ServiceEndpoint | UrlEndpoint = HERE) -> dict[str, dict[str, Any]]:
    webhooks = gang_webhooks(nothing_there(), settings, Backends(()))
    return {found["metadata"]["name"]: found for found in webhook_configurations(webhooks, endpoint)}


def a_rule(group: str, resource: str, *, version: str = "v1alpha1", delete: bool = False) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
        "operations": ["CREATE", "UPDATE", *(["DELETE"] if delete else [])],
        "scope": "*",
    }


OURS = {
    "podcliqueset-defaulting-webhook": (
        "MutatingWebhookConfiguration",
        "pcs.defaulting.webhooks.grove.io",
        "/webhooks/default-podcliqueset",
        "podcliquesets",
    ),
    "podcliqueset-validating-webhook": (
        "ValidatingWebhookConfiguration",
        "pcs.validating.webhooks.grove.io",
        "/webhooks/validate-podcliqueset",
        "podcliquesets",
    ),
    "clustertopology-validating-webhook": (
        "ValidatingWebhookConfiguration",
        "clustertopology.validating.webhooks.grove.io",
        "/webhooks/validate-clustertopology",
        "clustertopologybindings",
    ),
}


@pytest.mark.parametrize("name", OURS)
def test_a_configuration_is_as_groves_own(name: str) -> None:
    kind, webhook, path, resource = OURS[name]
    found = configurations(GangSettings())[name]
    assert (found["apiVersion"], found["kind"]) == ("admissionregistration.k8s.io/v1", kind)
    [entry] = found["webhooks"]
    assert (
        entry.items()
        >= {
            "name": webhook,
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "timeoutSeconds": 10,
            "sideEffects": "None",
            "rules": [a_rule("grove.io", resource)],
            "clientConfig": {
                "service": {"name": "grove-operator", "namespace": "grove-system", "port": 443, "path": path}
            },
        }.items()
    )


def test_the_authorizer_is_there_where_it_is_enabled() -> None:
    assert set(configurations(GangSettings())) == set(OURS)
    assert set(configurations(GUARDED)) == {*OURS, "authorizer-webhook"}


def test_the_authorizer_hears_of_managed_objects_alone() -> None:
    found = configurations(GUARDED, UrlEndpoint("https://127.0.0.1:9443"))["authorizer-webhook"]
    assert found["kind"] == "ValidatingWebhookConfiguration"
    [entry] = found["webhooks"]
    assert entry["name"] == "authorizer.webhooks.grove.io"
    assert entry["clientConfig"] == {"url": "https://127.0.0.1:9443/webhooks/authorizer-webhook"}
    assert entry["objectSelector"] == {"matchLabels": {"app.kubernetes.io/managed-by": "grove-operator"}}
    assert (entry["failurePolicy"], entry["matchPolicy"], entry["timeoutSeconds"]) == ("Fail", "Exact", 10)
    assert a_rule("grove.io", "podcliques", version="*", delete=True) in entry["rules"]
    assert a_rule("", "pods", version="*", delete=True) in entry["rules"]
