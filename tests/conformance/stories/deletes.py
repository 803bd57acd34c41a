"""Deletions: at once, gracefully, with finalizers, under conditions, of one and of many."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map, a_custom, a_definition, a_deployment, customs, defined
from tests.conformance.story import APPS, BATCH, CORE, Story, delete, get, patch, post, status_is

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"
PODS = f"{CORE}/pods"

STORIES = [
    Story(
        "preconditions of a deletion",
        [
            post(MAPS, a_config_map(), called="made"),
            delete(ONE, {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
            delete(ONE, {"preconditions": {"resourceVersion": "1"}}),
            delete(ONE, {"preconditions": {"uid": "{made.metadata.uid}", "resourceVersion": "1"}}),
            delete(ONE, {"preconditions": {"uid": "{made.metadata.uid}"}}, query={"dryRun": "All"}),
            delete(
                ONE,
                {
                    "preconditions": {
                        "uid": "{made.metadata.uid}",
                        "resourceVersion": "{made.metadata.resourceVersion}",
                    }
                },
            ),
        ],
    ),
    Story(
        "options of a deletion that are refused",
        [
            post(MAPS, a_config_map()),
            delete(ONE, {"propagationPolicy": "Sideways"}),
            delete(ONE, {"propagationPolicy": "Orphan", "orphanDependents": True}),
            delete(ONE, {"dryRun": ["Some"]}),
            delete(ONE, query={"dryRun": "Some"}),
            delete(ONE, {"kind": "DeleteOptions", "apiVersion": "v7"}),
            delete(ONE, {"kind": "Unicorn", "apiVersion": "v1"}),
            delete(ONE, {"gracePeriodSeconds": "soon"}),
            delete(ONE, query={"gracePeriodSeconds": "soon"}),
            delete(ONE, "{", content_type="application/json"),
            delete(ONE, {"unknown": 1}, query={"dryRun": "All"}),
            get(ONE),
        ],
    ),
    Story(
        "a finalizer holds an object",
        [
            post(MAPS, a_config_map(finalizers=["example.com/hold"])),
            delete(ONE, called="deleted"),
            get(ONE),
            delete(ONE),
            patch(ONE, {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}}),
            patch(ONE, {"data": {"a": "still writable"}}),
            patch(ONE, {"metadata": {"deletionTimestamp": None}}),
            post(MAPS, a_config_map()),
            patch(ONE, {"metadata": {"finalizers": None}}),
            get(ONE),
        ],
    ),
    Story(
        "propagation",
        [
            post(f"{APPS}/deployments", a_deployment("a")),
            delete(f"{APPS}/deployments/a", {"propagationPolicy": "Foreground"}),
            delete(f"{APPS}/deployments/a", {"propagationPolicy": "Background"}),
            post(f"{APPS}/deployments", a_deployment("b")),
            delete(f"{APPS}/deployments/b", {"propagationPolicy": "Orphan"}),
            post(f"{APPS}/deployments", a_deployment("c")),
            delete(f"{APPS}/deployments/c", query={"propagationPolicy": "Foreground"}),
            post(f"{APPS}/deployments", a_deployment("d")),
            delete(f"{APPS}/deployments/d", {"orphanDependents": True}),
            post(f"{APPS}/deployments", a_deployment("e")),
            delete(f"{APPS}/deployments/e"),
            post(MAPS, a_config_map()),
            delete(ONE, {"propagationPolicy": "Foreground"}),
        ],
    ),
    Story(
        "a job's pods are orphaned unless one says otherwise",
        [
            post(
                f"{BATCH}/jobs",
                {
                    "metadata": {"name": "a"},
                    "spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}
                    },
                },
            ),
            delete(f"{BATCH}/jobs/a"),
            get(f"{BATCH}/jobs/a"),
        ],
    ),
    Story(
        "a pod that is not on a node goes at once",
        [post(PODS, a_bare_pod()), delete(f"{PODS}/one"), get(f"{PODS}/one")],
        account=True,
    ),
    Story(
        "a pod on a node gets its grace",
        [
            post(PODS, a_bare_pod(nodeName="n1")),
            delete(f"{PODS}/one"),
            get(f"{PODS}/one"),
            delete(f"{PODS}/one", {"gracePeriodSeconds": 60}),
            delete(f"{PODS}/one", {"gracePeriodSeconds": 5}),
            delete(f"{PODS}/one", {"gracePeriodSeconds": 0}),
            get(f"{PODS}/one"),
        ],
        account=True,
    ),
    Story(
        "grace may be asked for",
        [
            post(PODS, a_bare_pod("a", nodeName="n1", terminationGracePeriodSeconds=7)),
            delete(f"{PODS}/a", {"gracePeriodSeconds": 3}),
            post(PODS, a_bare_pod("b", nodeName="n1", terminationGracePeriodSeconds=0)),
            delete(f"{PODS}/b"),
            post(PODS, a_bare_pod("c", nodeName="n1")),
            delete(f"{PODS}/c", {"gracePeriodSeconds": -5}),
            post(PODS, a_bare_pod("d", nodeName="n1")),
            delete(f"{PODS}/d", query={"gracePeriodSeconds": "1"}),
            post(PODS, a_bare_pod("e", nodeName="n1")),
            patch(f"{PODS}/e/status", {"status": {"phase": "Succeeded"}}),
            delete(f"{PODS}/e"),
        ],
        account=True,
    ),
    Story(
        "a pod with a finalizer outlives its grace",
        [
            post(PODS, a_bare_pod("one", {"finalizers": ["example.com/hold"]}, nodeName="n1")),
            delete(f"{PODS}/one", {"gracePeriodSeconds": 0}),
            get(f"{PODS}/one"),
            patch(f"{PODS}/one", {"metadata": {"finalizers": None}}),
            get(f"{PODS}/one"),
        ],
        account=True,
    ),
    Story(
        "a collection is deleted",
        [
            post(MAPS, a_config_map("a", labels={"x": "1"})),
            post(MAPS, a_config_map("b", labels={"x": "2"})),
            post(MAPS, a_config_map("c", labels={"x": "1"}, finalizers=["example.com/hold"])),
            delete(MAPS, query={"labelSelector": "x=1", "dryRun": "All"}),
            delete(MAPS, query={"labelSelector": "x=1"}),
            get(MAPS),
            delete(MAPS, query={"fieldSelector": "metadata.name=b"}),
            delete(MAPS, query={"labelSelector": "a=b=c"}),
            get(MAPS),
        ],
    ),
    Story(
        "deleting custom objects",
        [
            *defined(a_definition("doomlings")),
            post(customs("doomlings"), a_custom("doomlings"), until=status_is(201)),
            delete(f"{customs('doomlings')}/one"),
            post(
                customs("doomlings"),
                {**a_custom("doomlings"), "metadata": {"name": "two", "finalizers": ["example.com/hold"]}},
            ),
            delete(f"{customs('doomlings')}/two"),
            patch(f"{customs('doomlings')}/two", {"metadata": {"finalizers": []}}),
            get(f"{customs('doomlings')}/two"),
            post(
                customs("doomlings"), {**a_custom("doomlings"), "metadata": {"name": "three", "finalizers": ["plain"]}}
            ),
            delete(customs("doomlings")),
        ],
    ),
]
