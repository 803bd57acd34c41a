"""The status subresource: who may write what where."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_custom, a_definition, a_deployment, a_version, customs, defined
from tests.conformance.story import (
    APPS,
    BATCH,
    CORE,
    JSON_PATCH,
    STRATEGIC_PATCH,
    Story,
    get,
    patch,
    post,
    put,
    status_is,
)

DEPLOYMENT = f"{APPS}/deployments/one"
POD = f"{CORE}/pods/one"
WITH, WITHOUT = customs("statuslings"), customs("plainlings")

STORIES = [
    Story(
        "status is written at its own path",
        [
            post(f"{APPS}/deployments", {**a_deployment(), "status": {"replicas": 7}}),
            put(f"{DEPLOYMENT}/status", {**a_deployment(replicas=9), "status": {"replicas": 1, "readyReplicas": 1}}),
            get(f"{DEPLOYMENT}/status"),
            patch(DEPLOYMENT, {"status": {"replicas": 5}}),
            patch(f"{DEPLOYMENT}/status", {"spec": {"replicas": 5}}),
            patch(f"{DEPLOYMENT}/status", {"metadata": {"labels": {"a": "b"}}, "status": {"observedGeneration": 1}}),
            patch(f"{DEPLOYMENT}/status", {"status": {"replicas": -1}}),
            patch(f"{DEPLOYMENT}/status", {"status": {"replicas": 1, "readyReplicas": 2}}),
            patch(f"{DEPLOYMENT}/status", {"status": None}),
        ],
    ),
    Story(
        "the status of a pod",
        [
            post(f"{CORE}/pods", a_bare_pod()),
            patch(
                f"{POD}/status", {"status": {"phase": "Running", "podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}]}}
            ),
            patch(
                f"{POD}/status",
                {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
                STRATEGIC_PATCH,
            ),
            patch(
                f"{POD}/status",
                {"status": {"conditions": [{"type": "example.com/gate", "status": "False"}]}},
                STRATEGIC_PATCH,
            ),
            patch(f"{POD}/status", [{"op": "add", "path": "/status/reason", "value": "Because"}], JSON_PATCH),
            patch(f"{POD}/status", {"status": {"phase": "Odd"}}),
            patch(f"{POD}/status", {"status": {"podIP": "nonsense", "podIPs": [{"ip": "nonsense"}]}}),
            patch(f"{POD}/status", {"spec": {"nodeName": "n1"}}),
            patch(f"{POD}/status", {"metadata": {"annotations": {"a": "b"}, "finalizers": ["example.com/x"]}}),
            patch(POD, {"status": {"phase": "Failed"}}),
            get(f"{POD}/status"),
        ],
        account=True,
    ),
    Story(
        "the status of a job",
        [
            post(
                f"{BATCH}/jobs",
                {
                    "metadata": {"name": "one"},
                    "spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}
                    },
                },
            ),
            patch(f"{BATCH}/jobs/one/status", {"status": {"active": 1, "startTime": "2024-01-01T00:00:00Z"}}),
            patch(
                f"{BATCH}/jobs/one/status",
                {"status": {"succeeded": 1, "active": 0, "completionTime": "2024-01-01T00:01:00Z"}},
            ),
            patch(
                f"{BATCH}/jobs/one/status",
                {"status": {"conditions": [{"type": "Complete", "status": "True"}], "active": 1}},
            ),
            patch(
                f"{BATCH}/jobs/one/status",
                {
                    "status": {
                        "conditions": [
                            {"type": "SuccessCriteriaMet", "status": "True"},
                            {"type": "Complete", "status": "True"},
                        ],
                        "active": 0,
                        "succeeded": 1,
                        "completionTime": "2024-01-01T00:01:00Z",
                    }
                },
            ),
            patch(f"{BATCH}/jobs/one/status", {"status": {"conditions": None}}),
        ],
    ),
    Story(
        "custom objects with a status subresource",
        [
            *defined(a_definition("statuslings", a_version(subresources={"status": {}}))),
            post(WITH, a_custom("statuslings", spec={"size": 1}, status={"a": 1}), until=status_is(201)),
            patch(f"{WITH}/one", {"status": {"a": 2}}),
            patch(f"{WITH}/one/status", {"status": {"a": 3}, "spec": {"size": 9}}),
            patch(f"{WITH}/one", {"spec": {"size": 2}}),
            patch(f"{WITH}/one/status", {"metadata": {"labels": {"x": "y"}}}),
            put(f"{WITH}/one/status", a_custom("statuslings", status={"a": 4})),
            get(f"{WITH}/one/status"),
            get(f"{WITH}/one/scale"),
        ],
    ),
    Story(
        "custom objects without a status subresource",
        [
            *defined(a_definition("plainlings")),
            post(WITHOUT, a_custom("plainlings", spec={"size": 1}, status={"a": 1}), until=status_is(201)),
            patch(f"{WITHOUT}/one", {"status": {"a": 2}}),
            patch(f"{WITHOUT}/one/status", {"status": {"a": 3}}),
            get(f"{WITHOUT}/one/status"),
        ],
    ),
]
