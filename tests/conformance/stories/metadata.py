"""Names, labels, annotations, owners and the other metadata: what is taken, and how what is not is refused."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map, a_deployment, a_service
from tests.conformance.story import APPS, CORE, MERGE_PATCH, Story, get, patch, post, put

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-2222-3333-4444-555555555555"}

STORIES = [
    Story(
        "a name may be generated",
        [
            post(MAPS, {"metadata": {"generateName": "web-"}}, called="made"),
            get(f"{MAPS}/{{made.metadata.name}}"),
            post(MAPS, {"metadata": {"generateName": "web-", "name": "chosen"}}),
            post(MAPS, {"metadata": {"generateName": "Bad_"}}),
            post(MAPS, {"metadata": {}}),
            post(MAPS, {"metadata": {"generateName": "x" * 60 + "-"}}, query={"dryRun": "All"}, shown=lambda _: None),
        ],
    ),
    Story(
        "names of config maps",
        [
            post(MAPS, a_config_map(name))
            for name in (
                "UPPER",
                "under_score",
                "a.b",
                "-dash",
                "dot.",
                "x" * 253,
                "x" * 254,
                "sp ace",
                "ümlaut",
                "a/b",
            )
        ],
    ),
    Story(
        "names of services and namespaces",
        [
            post(f"{CORE}/services", a_service("9lives")),
            post(f"{CORE}/services", a_service("with.dot")),
            post(f"{CORE}/services", a_service("x" * 64)),
            post("/api/v1/namespaces", {"metadata": {"name": "with.dot"}}),
            post("/api/v1/namespaces", {"metadata": {"name": "Upper"}}),
            post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "a:b/c"}}),
            post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "system:conformance:ok"}}),
        ],
    ),
    Story(
        "names of workloads",
        [
            post(f"{APPS}/deployments", {**a_deployment(), "metadata": {"name": "Bad"}}),
            post(f"{CORE}/pods", a_bare_pod("Bad.Name")),
            post(f"{CORE}/pods", a_bare_pod("p" * 64)),
        ],
        account=True,
    ),
    Story(
        "labels that are refused",
        [
            post(MAPS, a_config_map(labels=labels))
            for labels in (
                {"-bad": "x"},
                {"a/b/c": "x"},
                {"UPPER.example.com/name": "x"},
                {"": "x"},
                {"ok": "-bad"},
                {"ok": "x" * 64},
                {"n" * 64: "x"},
                {"ok": "sp ace"},
            )
        ],
    ),
    Story(
        "labels and annotations that are taken",
        [
            post(
                MAPS,
                a_config_map(
                    labels={"a": "", "example.com/Name_1.x": "Value-1_x.y"},
                    annotations={"example.com/note": "any ümlaut\ntext", "UPPER": ""},
                ),
            ),
        ],
    ),
    Story(
        "annotations that are refused",
        [
            post(MAPS, a_config_map(annotations={"bad key": "x"})),
            post(MAPS, a_config_map(annotations={"big": "x" * (256 * 1024)})),
            post(MAPS, a_config_map(annotations={"number": 1})),
            post(MAPS, a_config_map(labels={"number": 1})),
            post(MAPS, a_config_map(labels=["list"])),
            post(MAPS, a_config_map(labels={"null": None})),
        ],
    ),
    Story(
        "owner references",
        [
            post(MAPS, a_config_map("a", ownerReferences=[OWNER])),
            post(MAPS, a_config_map("b", ownerReferences=[{**OWNER, "controller": True}])),
            post(
                MAPS,
                a_config_map(
                    "c", ownerReferences=[{**OWNER, "controller": True}, {**OWNER, "name": "x", "controller": True}]
                ),
            ),
            post(MAPS, a_config_map("d", ownerReferences=[{"name": "owner"}])),
            post(MAPS, a_config_map("e", ownerReferences=[{**OWNER, "apiVersion": "a/b/c"}])),
            post(MAPS, a_config_map("f", ownerReferences=[{**OWNER, "apiVersion": "v1", "kind": "Event"}])),
            patch(f"{MAPS}/a", {"metadata": {"ownerReferences": None}}),
        ],
    ),
    Story(
        "finalizers",
        [
            post(MAPS, a_config_map("a", finalizers=["example.com/hold", "example.com/hold"])),
            post(MAPS, a_config_map("b", finalizers=["nothing"])),
            post(MAPS, a_config_map("c", finalizers=["kubernetes"])),
            post(MAPS, a_config_map("d", finalizers=["orphan", "foregroundDeletion"])),
            post(MAPS, a_config_map("e", finalizers=["bad/one/two"])),
        ],
    ),
    Story(
        "metadata that never changes",
        [
            post(MAPS, a_config_map(), called="made"),
            patch(ONE, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}),
            patch(ONE, {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}),
            patch(ONE, {"metadata": {"name": "two"}}),
            patch(ONE, {"metadata": {"namespace": "elsewhere"}}),
            patch(ONE, {"metadata": {"generateName": "x-"}}),
            patch(ONE, {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
            patch(ONE, {"metadata": {"generation": 9}}),
            patch(ONE, {"metadata": {"resourceVersion": "1"}}),
            patch(ONE, {"metadata": {"selfLink": "/somewhere"}}),
            get(ONE),
        ],
    ),
    Story(
        "managed fields may be cleared and may be nonsense",
        [
            post(MAPS, a_config_map(data={"a": "1"}), query={"fieldManager": "first"}),
            patch(ONE, {"metadata": {"managedFields": [{}]}}, MERGE_PATCH),
            patch(ONE, {"data": {"a": "2"}}, query={"fieldManager": "second"}),
            put(ONE, a_config_map(data={"a": "2"}, managedFields=[]), query={"fieldManager": "third"}),
            patch(ONE, {"metadata": {"managedFields": [{"manager": "x", "operation": "Apply"}]}}),
            patch(ONE, {"data": {"a": "3"}}, query={"fieldManager": "m" * 129}),
            patch(ONE, {"data": {"a": "3"}}, query={"fieldManager": "new\nline"}),
        ],
    ),
    Story(
        "two managers of updates",
        [
            post(MAPS, a_config_map(data={"a": "1"}), query={"fieldManager": "first"}),
            patch(ONE, {"data": {"b": "1"}}, query={"fieldManager": "second"}),
            patch(ONE, {"data": {"a": "2"}}, query={"fieldManager": "second"}),
            patch(ONE, {"data": {"b": None}}, query={"fieldManager": "first"}),
            put(ONE, a_config_map(), query={"fieldManager": "third"}),
        ],
    ),
]
