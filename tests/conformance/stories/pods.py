"""What else can be done with a pod: binding, eviction, debugging, resizing."""

from __future__ import annotations

from tests.conformance.objects import a_bare_node, a_bare_pod, a_container
from tests.conformance.story import CORE, STRATEGIC_PATCH, Story, delete, get, patch, post

POD = f"{CORE}/pods/one"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one", "namespace": "{ns}"}}


def bound_to(node: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "one"},
        "target": {"kind": "Node", "name": node},
    }


STORIES = [
    Story(
        "a pod is bound once",
        [
            post(f"{CORE}/pods", a_bare_pod()),
            post(f"{POD}/binding", {**bound_to("n1"), "target": {"kind": "Pod", "name": "n1"}}),
            post(f"{POD}/binding", bound_to("")),
            post(f"{POD}/binding", bound_to("n1")),
            get(POD),
            post(f"{POD}/binding", bound_to("n2")),
            post(f"{POD}/binding", bound_to("n1")),
            post(f"{CORE}/pods/absent/binding", {**bound_to("n1"), "metadata": {"name": "absent"}}),
        ],
        account=True,
    ),
    Story(
        "a binding by its own resource",
        [
            post(f"{CORE}/pods", a_bare_pod()),
            post(
                f"{CORE}/bindings", {**bound_to("n3"), "metadata": {"name": "one", "annotations": {"why": "because"}}}
            ),
            get(POD),
        ],
        account=True,
    ),
    Story(
        "a binding with a uid",
        [
            post(f"{CORE}/pods", a_bare_pod(), called="made"),
            post(
                f"{POD}/binding",
                {**bound_to("n1"), "metadata": {"name": "one", "uid": "11111111-2222-3333-4444-555555555555"}},
            ),
            post(f"{POD}/binding", {**bound_to("n1"), "metadata": {"name": "two"}}),
            post(f"{POD}/binding", bound_to("n1"), query={"dryRun": "All"}),
            get(POD, shown=lambda body: body["spec"].get("nodeName")),
            post(f"{POD}/binding", {**bound_to("n1"), "metadata": {"name": "one", "uid": "{made.metadata.uid}"}}),
        ],
        account=True,
    ),
    Story(
        "evictions",
        [
            post(f"{CORE}/pods", a_bare_pod(nodeName="n1")),
            post(f"{POD}/eviction", {**EVICTION, "metadata": {"name": "two"}}),
            post(f"{POD}/eviction", {**EVICTION, "deleteOptions": {"dryRun": ["All"]}}),
            post(f"{POD}/eviction", EVICTION),
            get(POD),
            post(f"{CORE}/pods/absent/eviction", {**EVICTION, "metadata": {"name": "absent"}}),
        ],
        account=True,
    ),
    Story(
        "a budget holds an eviction back",
        [
            post(
                BUDGETS,
                {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}}},
            ),
            post(f"{CORE}/pods", a_bare_pod("one", {"labels": {"app": "one"}}, nodeName="n1")),
            patch(
                f"{POD}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
            ),
            post(f"{POD}/eviction", EVICTION),
            patch(
                f"{BUDGETS}/b/status",
                {
                    "status": {
                        "observedGeneration": 1,
                        "disruptionsAllowed": 0,
                        "currentHealthy": 1,
                        "desiredHealthy": 1,
                        "expectedPods": 1,
                    }
                },
            ),
            post(f"{POD}/eviction", EVICTION),
            patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 1, "currentHealthy": 2, "expectedPods": 2}}),
            post(f"{POD}/eviction", EVICTION),
            get(f"{BUDGETS}/b"),
        ],
        account=True,
    ),
    Story(
        "two budgets for one pod",
        [
            post(BUDGETS, {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {}}}),
            post(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}),
            post(f"{CORE}/pods", a_bare_pod(nodeName="n1")),
            patch(
                f"{POD}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
            ),
            post(f"{POD}/eviction", EVICTION),
        ],
        account=True,
    ),
    Story(
        "ephemeral containers",
        [
            post(f"{CORE}/pods", a_bare_pod()),
            patch(POD, {"spec": {"ephemeralContainers": [a_container("debug")]}}),
            patch(
                f"{POD}/ephemeralcontainers", {"spec": {"ephemeralContainers": [a_container("debug")]}}, STRATEGIC_PATCH
            ),
            patch(
                f"{POD}/ephemeralcontainers", {"spec": {"ephemeralContainers": [a_container("main")]}}, STRATEGIC_PATCH
            ),
            patch(f"{POD}/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}),
            patch(
                f"{POD}/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [a_container("e2", ports=[{"containerPort": 1}])]}},
                STRATEGIC_PATCH,
            ),
            get(f"{POD}/ephemeralcontainers"),
            post(f"{CORE}/pods", a_bare_pod("two", ephemeralContainers=[a_container("debug")])),
        ],
        account=True,
    ),
    Story(
        "resizing a pod",
        [
            post(
                f"{CORE}/pods",
                a_bare_pod(containers=[a_container(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})]),
            ),
            patch(POD, {"spec": {"containers": [a_container(resources={"requests": {"cpu": "2"}})]}}),
            patch(
                f"{POD}/resize",
                {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}]}},
                STRATEGIC_PATCH,
            ),
            patch(f"{POD}/resize", {"spec": {"containers": [{"name": "main", "image": "other"}]}}, STRATEGIC_PATCH),
            patch(
                f"{POD}/resize",
                {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "9"}}}]}},
                STRATEGIC_PATCH,
            ),
            patch(
                f"{POD}/resize",
                {"spec": {"containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]}},
                STRATEGIC_PATCH,
            ),
            get(f"{POD}/resize"),
        ],
        account=True,
    ),
    Story(
        "a pod's log without a node",
        [post(f"{CORE}/pods", a_bare_pod()), get(f"{POD}/log"), get(f"{POD}/log", query={"container": "none"})],
        account=True,
    ),
    Story(
        "mirror pods and pods of nodes",
        [
            post(
                f"{CORE}/pods", a_bare_pod("one", {"annotations": {"kubernetes.io/config.mirror": "x"}}, nodeName="n1")
            ),
            post("/api/v1/nodes", a_bare_node("pods-node")),
            get("/api/v1/nodes/pods-node/status"),
            delete("/api/v1/nodes/pods-node"),
        ],
        account=True,
    ),
]
