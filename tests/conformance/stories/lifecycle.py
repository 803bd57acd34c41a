"""Objects are made, read, replaced and removed; what may not be done with them."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map, a_deployment
from tests.conformance.story import APPS, CORE, PARTIAL, Story, delete, get, post, put

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"

STORIES = [
    Story(
        "a config map lives and dies",
        [
            post(MAPS, a_config_map(data={"a": "1"}), called="made"),
            get(ONE),
            put(ONE, a_config_map(data={"a": "2"}, resourceVersion="{made.metadata.resourceVersion}")),
            get(ONE),
            delete(ONE),
            get(ONE),
            delete(ONE),
        ],
    ),
    Story(
        "what exists is not created again",
        [
            post(MAPS, a_config_map()),
            post(MAPS, a_config_map()),
            post(MAPS, a_config_map(), query={"dryRun": "All"}),
            post(f"{CORE}/pods", a_bare_pod("absent-account")),
        ],
    ),
    Story(
        "what is not there is not found",
        [
            get(ONE),
            put(ONE, a_config_map(data={"a": "1"})),
            put(ONE, a_config_map(resourceVersion="1")),
            delete(ONE),
            get(f"{APPS}/deployments/none"),
            get("/apis/rbac.authorization.k8s.io/v1/clusterroles/none-of-this-name"),
            get(f"{CORE}/pods/none/status"),
            get(f"{APPS}/deployments/none/scale"),
        ],
    ),
    Story(
        "unknown paths, groups, versions and subresources",
        [
            get("/nowhere"),
            get("/api/v2"),
            get("/apis/none.example.com"),
            get("/apis/none.example.com/v1"),
            get("/apis/apps/v7/deployments"),
            get(f"{CORE}/unicorns"),
            get(f"{APPS}/unicorns/one"),
            get(f"{CORE}/configmaps/one/status"),
            get(f"{CORE}/pods/one/unicorn"),
            get("/api/v1/namespaces/{ns}/nodes"),
        ],
    ),
    Story(
        "methods that a resource does not have",
        [
            put(MAPS, a_config_map()),
            post(ONE, a_config_map()),
            get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
            delete("/api/v1/namespaces"),
            post("/api/v1/configmaps", a_config_map()),
            post("/version", {}),
        ],
    ),
    Story(
        "body and path must agree",
        [
            post(MAPS, a_config_map(namespace="elsewhere")),
            post(MAPS, a_config_map(), called="made"),
            put(ONE, a_config_map("two")),
            put(ONE, a_config_map(namespace="elsewhere")),
            put(ONE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}),
            post(MAPS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "three"}}),
            post(MAPS, {"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "three"}}),
            post(MAPS, {"apiVersion": "v1", "metadata": {"name": "without-kind"}}),
            post(MAPS, {"kind": "ConfigMap", "metadata": {"name": "without-version"}}),
            post(MAPS, {"metadata": {"name": "without-both"}}),
            post(MAPS, {"apiVersion": "v1", "kind": "Unicorn", "metadata": {"name": "three"}}),
        ],
    ),
    Story(
        "optimistic concurrency",
        [
            post(MAPS, a_config_map(data={"a": "1"}), called="first"),
            put(ONE, a_config_map(data={"a": "2"}, resourceVersion="{first.metadata.resourceVersion}")),
            put(ONE, a_config_map(data={"a": "3"}, resourceVersion="{first.metadata.resourceVersion}")),
            put(ONE, a_config_map(data={"a": "4"})),
            put(ONE, a_config_map(data={"a": "5"}, resourceVersion="junk")),
            put(ONE, a_config_map(data={"a": "5"}, resourceVersion="0")),
            put(ONE, a_config_map(data={"a": "6"}, uid="11111111-2222-3333-4444-555555555555")),
            put(ONE, a_config_map(data={"a": "7"}, uid="{first.metadata.uid}")),
            get(ONE),
        ],
    ),
    Story(
        "a resource version is not set by who creates",
        [post(MAPS, a_config_map(resourceVersion="1")), post(MAPS, a_config_map(uid="mine", selfLink="/x"))],
    ),
    Story(
        "a write that changes nothing is no write",
        [
            post(MAPS, a_config_map(data={"a": "1"}), called="made"),
            put(ONE, a_config_map(data={"a": "1"})),
            put(ONE, a_config_map(data={"a": "1"}, resourceVersion="{made.metadata.resourceVersion}")),
            get(ONE),
        ],
    ),
    Story(
        "generation counts changes of what is asked for",
        [
            post(f"{APPS}/deployments", a_deployment(replicas=2), called="made"),
            put(
                f"{APPS}/deployments/one",
                {**a_deployment(replicas=2), "metadata": {"name": "one", "labels": {"tier": "web"}}},
            ),
            put(f"{APPS}/deployments/one", a_deployment(replicas=3)),
            put(f"{APPS}/deployments/one", {**a_deployment(replicas=3), "status": {"replicas": 7}}),
            get(f"{APPS}/deployments/one"),
        ],
    ),
    Story(
        "a client's generation and system metadata are ignored",
        [
            post(
                f"{APPS}/deployments",
                {
                    **a_deployment(),
                    "metadata": {
                        "name": "one",
                        "generation": 7,
                        "creationTimestamp": "2001-01-01T00:00:00Z",
                        "deletionTimestamp": "2001-01-01T00:00:00Z",
                        "deletionGracePeriodSeconds": 3,
                    },
                },
            ),
        ],
    ),
    Story(
        "an answer may be metadata alone",
        [
            post(MAPS, a_config_map(data={"a": "1"}), accept=PARTIAL),
            get(ONE, accept=PARTIAL),
            put(ONE, a_config_map(data={"a": "2"}), accept=PARTIAL),
            delete(ONE, accept=PARTIAL),
        ],
    ),
    Story(
        "reading at a resource version",
        [
            post(MAPS, a_config_map(), called="made"),
            get(ONE, query={"resourceVersion": "{made.metadata.resourceVersion}"}),
            get(ONE, query={"resourceVersion": "junk"}),
            get(ONE, query={"resourceVersion": "-1"}),
            get(ONE, query={"pretty": "true"}),
        ],
    ),
]
