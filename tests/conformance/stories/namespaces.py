"""Namespaces: made, missing, ending and ended."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map
from tests.conformance.story import CORE, Story, apply, delete, get, patch, post, put

NAMESPACES = "/api/v1/namespaces"

STORIES = [
    Story(
        "a namespace is made",
        [
            post(NAMESPACES, {"metadata": {"name": "conformance-made", "labels": {"a": "b"}}}),
            get(f"{NAMESPACES}/conformance-made"),
            patch(f"{NAMESPACES}/conformance-made", {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}}),
            patch(f"{NAMESPACES}/conformance-made", {"spec": {"finalizers": ["example.com/own"]}}),
            patch(f"{NAMESPACES}/conformance-made/status", {"status": {"phase": "Terminating"}}),
            post(NAMESPACES, {"metadata": {"generateName": "conformance-gen-"}}),
            post(NAMESPACES, {"metadata": {"name": "conformance-fin"}, "spec": {"finalizers": ["example.com/own"]}}),
        ],
    ),
    Story(
        "nothing is made in a namespace that is missing",
        [
            post("/api/v1/namespaces/no-such-place/configmaps", a_config_map()),
            post("/api/v1/namespaces/no-such-place/pods", a_bare_pod()),
            apply("/api/v1/namespaces/no-such-place/configmaps/one", a_config_map()),
            get("/api/v1/namespaces/no-such-place"),
            get("/api/v1/namespaces/no-such-place/configmaps/one"),
            delete("/api/v1/namespaces/no-such-place"),
            delete("/api/v1/namespaces/no-such-place/configmaps/one"),
        ],
    ),
    Story(
        "a namespace ends",
        [
            post(f"{CORE}/configmaps", a_config_map()),
            delete("/api/v1/namespaces/{ns}"),
            get("/api/v1/namespaces/{ns}"),
            post(f"{CORE}/configmaps", a_config_map("two")),
            put(f"{CORE}/configmaps/one", a_config_map(data={"still": "writable"})),
            delete("/api/v1/namespaces/{ns}"),
            delete(f"{CORE}/configmaps/one"),
            get("/api/v1/namespaces/{ns}", called="ending"),
            put("/api/v1/namespaces/{ns}/finalize", {"metadata": {"name": "{ns}"}, "spec": {"finalizers": []}}),
            get("/api/v1/namespaces/{ns}"),
        ],
    ),
    Story(
        "finalize changes finalizers alone",
        [
            put(
                "/api/v1/namespaces/{ns}/finalize",
                {"metadata": {"name": "{ns}", "labels": {"x": "y"}}, "spec": {"finalizers": ["example.com/own"]}},
            ),
            put(
                "/api/v1/namespaces/{ns}/finalize",
                {"metadata": {"name": "{ns}"}, "spec": {"finalizers": ["bad finalizer"]}},
            ),
            put(
                "/api/v1/namespaces/{ns}/finalize",
                {"metadata": {"name": "{ns}"}, "spec": {"finalizers": ["example.com/own", "kubernetes"]}},
            ),
            get("/api/v1/namespaces/{ns}/finalize"),
        ],
    ),
    Story(
        "the namespaces of the system stay",
        [
            delete("/api/v1/namespaces/default"),
            delete("/api/v1/namespaces/kube-system"),
            delete("/api/v1/namespaces/kube-public"),
            get("/api/v1/namespaces/kube-node-lease"),
        ],
    ),
]
