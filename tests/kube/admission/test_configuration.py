from __future__ import annotations

import base64
from typing import Any

import pytest

from shoal.kube.admission import (
    Injector,
    ServiceEndpoint,
    UrlEndpoint,
    Webhooks,
    conversion_section,
    mutating_configuration,
    validating_configuration,
)
from shoal.kube.admission.injection import injection
from shoal.kube.admission.jsonpatch import apply
from shoal.kube.client import Client
from tests.support.builders.reviews import QUEUES, object_server

SERVICE = ServiceEndpoint(name="hooks", namespace="shoal")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def a_configuration(*bundles: str | None) -> dict[str, Any]:
    webhooks = [
        {"name": f"w{place}.shoal.test", "clientConfig": {"url": "https://x"} | ({"caBundle": text} if text else {})}
        for place, text in enumerate(bundles)
    ]
    return {"metadata": {"name": "shoal"}, "webhooks": webhooks}


class TestConfiguration:
    def test_what_is_registered_is_what_the_api_server_is_told(self) -> None:
        webhooks = Webhooks()
        webhooks.defaulting(QUEUES)(lambda queue: queue)
        webhooks.validating(
            QUEUES,
            name="guard.shoal.test",
            operations=["UPDATE", "DELETE"],
            subresource="status",
            failure_policy="Ignore",
            match_policy="Exact",
            timeout_seconds=3,
            object_selector={"matchLabels": {"a": "b"}},
            namespace_selector={"matchExpressions": [{"key": "k", "operator": "Exists"}]},
            match_conditions=[{"name": "n", "expression": "true"}],
        )(lambda change: None)
        assert mutating_configuration("shoal", webhooks, SERVICE, labels={"app": "shoal"}) == {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "shoal", "labels": {"app": "shoal"}},
            "webhooks": [
                {
                    "name": "mutate.queue.v2.shoal.test",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {
                        "service": {
                            "name": "hooks",
                            "namespace": "shoal",
                            "port": 443,
                            "path": "/mutate-shoal-test-v2-queue",
                        }
                    },
                    "rules": [
                        {
                            "apiGroups": ["shoal.test"],
                            "apiVersions": ["v2"],
                            "resources": ["queues"],
                            "operations": ["CREATE", "UPDATE"],
                            "scope": "*",
                        }
                    ],
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "sideEffects": "None",
                    "timeoutSeconds": 10,
                    "reinvocationPolicy": "Never",
                }
            ],
        }
        (entry,) = validating_configuration(
            "shoal", webhooks, UrlEndpoint("https://127.0.0.1:9443/"), authorities=b"PEM"
        )["webhooks"]
        assert entry == {
            "name": "guard.shoal.test",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": "https://127.0.0.1:9443/validate-shoal-test-v2-queue",
                "caBundle": base64.b64encode(b"PEM").decode(),
            },
            "rules": [
                {
                    "apiGroups": ["shoal.test"],
                    "apiVersions": ["v2"],
                    "resources": ["queues/status"],
                    "operations": ["UPDATE", "DELETE"],
                    "scope": "*",
                }
            ],
            "failurePolicy": "Ignore",
            "matchPolicy": "Exact",
            "sideEffects": "None",
            "timeoutSeconds": 3,
            "objectSelector": {"matchLabels": {"a": "b"}},
            "namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "Exists"}]},
            "matchConditions": [{"name": "n", "expression": "true"}],
        }

    def test_a_definition_learns_where_its_versions_are_converted(self) -> None:
        section = conversion_section(SERVICE, authorities=b"PEM")
        assert section["strategy"] == "Webhook"
        assert section["webhook"]["clientConfig"]["service"]["path"] == "/convert"
        assert section["webhook"]["clientConfig"]["caBundle"] == base64.b64encode(b"PEM").decode()


NEW = base64.b64encode(b"new").decode()


class TestInjection:
    @pytest.mark.parametrize(
        ("content", "places"),
        [
            pytest.param(a_configuration(None, NEW, "b2xk"), ["/webhooks/0", "/webhooks/2"], id="missing and outdated"),
            pytest.param(a_configuration(NEW, NEW), [], id="all in place"),
            pytest.param({"metadata": {}, "webhooks": None}, [], id="no webhooks"),
            pytest.param(
                {"spec": {"conversion": conversion_section(SERVICE)}}, ["/spec/conversion/webhook"], id="conversion"
            ),
            pytest.param({"spec": {"conversion": {"strategy": "None"}}}, [], id="no conversion"),
        ],
    )
    def test_the_bundle_is_put_where_it_is_not(self, content: dict[str, Any], places: list[str]) -> None:
        operations = injection(content, b"new")
        written = [each["path"] for each in operations if each["op"] == "add"]
        assert written == [f"{place}/clientConfig/caBundle" for place in places]
        assert injection(apply(operations, content), b"new") == []

    async def test_a_second_run_writes_nothing_and_a_removed_bundle_comes_back(self) -> None:
        path = f"{CONFIGURATIONS}/validatingwebhookconfigurations/shoal"
        server = object_server((path, a_configuration(None)))
        injector = Injector(Client(server), validating=["shoal"])
        assert await injector.inject(b"new") == 1
        assert await injector.inject(b"new") == 0
        assert [request.method for request in server.requests] == ["GET", "PATCH", "GET"]
        assert await injector.inject(b"newer") == 1

    async def test_every_named_object_is_kept_and_a_missing_one_is_no_obstacle(self) -> None:
        definition = {"metadata": {"name": "queues"}, "spec": {"conversion": conversion_section(SERVICE)}}
        server = object_server(
            (f"{CONFIGURATIONS}/mutatingwebhookconfigurations/shoal", a_configuration(None)),
            (f"{CONFIGURATIONS}/validatingwebhookconfigurations/shoal", a_configuration(None)),
            (f"{DEFINITIONS}/queues", definition),
        )
        injector = Injector(Client(server), mutating=["missing", "shoal"], validating=["shoal"], definitions=["queues"])
        assert await injector.inject(b"new") == 3
