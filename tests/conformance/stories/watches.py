"""Watches: from which moment on, of which objects, in which form, and how they end."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map, a_custom, a_definition, customs, defined
from tests.conformance.story import (
    CORE,
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    Events,
    Request,
    Story,
    delete,
    get,
    patch,
    post,
    put,
    status_is,
    watch,
    watched,
)

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"
PODS = f"{CORE}/pods"


def made(name: str = "one", **labels: str) -> Request:
    return post(MAPS, a_config_map(name, data={"a": "1"}, labels=labels), called=name)


def selected(chosen: str | None) -> Request:
    return patch(ONE, {"metadata": {"labels": {"in": chosen}}})


STORIES = [
    Story("a watch begins with what is there", [made("a"), made("b"), watched(MAPS)]),
    Story("a watch of nothing ends empty", [watched(MAPS), watched(MAPS, resourceVersion="0")]),
    Story(
        "a watch goes on from a version",
        [
            made("a"),
            get(MAPS, called="listed"),
            watch(MAPS, resourceVersion="{listed.metadata.resourceVersion}"),
            made("one"),
            put(ONE, a_config_map(data={"a": "2"})),
            put(ONE, a_config_map(data={"a": "2"})),
            delete(ONE),
            Events(count=3),
        ],
    ),
    Story(
        "a watch tells what happened before it",
        [
            made("one"),
            put(ONE, a_config_map(data={"a": "2"})),
            delete(ONE),
            watched(MAPS, resourceVersion="{one.metadata.resourceVersion}"),
        ],
    ),
    Story(
        "objects enter and leave a selection",
        [
            get(MAPS, called="listed"),
            watch(MAPS, resourceVersion="{listed.metadata.resourceVersion}", labelSelector="in=yes"),
            made("one"),
            selected("yes"),
            patch(ONE, {"data": {"a": "2"}}),
            selected(None),
            selected("yes"),
            delete(ONE),
            Events(count=5),
        ],
    ),
    Story(
        "a watch of one name",
        [
            made("a"),
            watch(MAPS, fieldSelector="metadata.name=one"),
            made("b"),
            made("one"),
            delete(ONE),
            Events(count=2),
        ],
    ),
    Story(
        "a watch of one path",
        [
            made("one"),
            made("other"),
            watched(ONE),
            watched(ONE, fieldSelector="metadata.name=other"),
            get("/api/v1/watch/namespaces/{ns}/configmaps/one", query={"watch": "true", "timeoutSeconds": "1"}),
            get("/api/v1/watch/namespaces/{ns}/configmaps", query={"watch": "true", "timeoutSeconds": "1"}),
        ],
    ),
    Story(
        "pods that move between selections",
        [
            watch(PODS, fieldSelector="spec.nodeName=n1"),
            post(PODS, a_bare_pod("one")),
            post(f"{PODS}/one/binding", {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n1"}}),
            patch(f"{PODS}/one/status", {"status": {"phase": "Running"}}),
            delete(f"{PODS}/one", {"gracePeriodSeconds": 0}),
            Events(count=4),
        ],
        account=True,
    ),
    Story(
        "initial events end with a bookmark",
        [
            made("a"),
            made("b"),
            watch(
                MAPS,
                sendInitialEvents="true",
                allowWatchBookmarks="true",
                resourceVersionMatch="NotOlderThan",
            ),
            Events(count=3),
            delete(f"{MAPS}/a"),
            Events(count=1),
        ],
    ),
    Story(
        "initial events of a selection",
        [
            made("a", x="1"),
            made("b"),
            watch(
                MAPS,
                sendInitialEvents="true",
                allowWatchBookmarks="true",
                resourceVersionMatch="NotOlderThan",
                labelSelector="x=1",
            ),
            Events(count=2),
        ],
    ),
    Story(
        "no initial events but a bookmark",
        [
            made("a"),
            watch(
                MAPS,
                sendInitialEvents="false",
                resourceVersionMatch="NotOlderThan",
                resourceVersion="{a.metadata.resourceVersion}",
            ),
            made("b"),
            Events(count=1),
        ],
    ),
    Story(
        "watch options that are refused",
        [
            watched(MAPS, sendInitialEvents="true"),
            watched(MAPS, sendInitialEvents="true", resourceVersionMatch="Exact", resourceVersion="1"),
            watched(MAPS, resourceVersionMatch="NotOlderThan"),
            watched(MAPS, resourceVersion="1", resourceVersionMatch="NotOlderThan"),
            watched(MAPS, labelSelector="a=b=c"),
            watched(MAPS, fieldSelector="no.such=field"),
            watched(MAPS, limit="junk"),
            get(MAPS, query={"watch": "true", "timeoutSeconds": "junk"}),
            get(MAPS, query={"watch": "false", "limit": "1"}),
            get(MAPS, query={"watch": "maybe", "timeoutSeconds": "1"}),
            get(MAPS, query={"sendInitialEvents": "true", "limit": "1"}),
        ],
    ),
    Story("a junk version to watch from", [watched(MAPS, resourceVersion="junk")]),
    Story("a version too old to watch from", [watched(MAPS, resourceVersion="1")]),
    Story(
        "watches of metadata alone",
        [
            made("a"),
            watched(MAPS, accept=PARTIAL),
            watched(MAPS, accept=PARTIAL_LIST),
            watch(MAPS, accept=PARTIAL, resourceVersion="{a.metadata.resourceVersion}"),
            delete(f"{MAPS}/a"),
            Events(count=1),
        ],
    ),
    Story(
        "watches of tables",
        [
            made("a"),
            made("b"),
            watched(MAPS, accept=TABLE),
            watched(MAPS, accept=TABLE, includeObject="None"),
            watched(MAPS, accept=TABLE, includeObject="Object"),
            watch(
                MAPS,
                accept=TABLE,
                sendInitialEvents="true",
                allowWatchBookmarks="true",
                resourceVersionMatch="NotOlderThan",
            ),
            Events(count=3),
            delete(f"{MAPS}/a"),
            Events(count=1),
        ],
    ),
    Story(
        "a deletion with a finalizer is a change first",
        [
            post(MAPS, a_config_map(finalizers=["example.com/hold"]), called="one"),
            watch(MAPS, resourceVersion="{one.metadata.resourceVersion}"),
            delete(ONE),
            patch(ONE, {"metadata": {"finalizers": None}}),
            Events(count=2),
        ],
    ),
    Story(
        "a deleted collection is told one by one",
        [
            made("a"),
            made("b"),
            made("c"),
            watch(MAPS, resourceVersion="{c.metadata.resourceVersion}"),
            delete(MAPS, query={"labelSelector": "nothing=here"}),
            delete(f"{MAPS}/b"),
            delete(f"{MAPS}/a"),
            Events(count=2),
        ],
    ),
    Story(
        "watches of custom objects",
        [
            *defined(a_definition("watchlings")),
            post(customs("watchlings"), a_custom("watchlings", "a", spec={"size": 1}), until=status_is(201)),
            watch(customs("watchlings")),
            patch(f"{customs('watchlings')}/a", {"spec": {"size": 2}}),
            delete(f"{customs('watchlings')}/a"),
            Events(count=3),
            watch(customs("watchlings"), "table", accept=TABLE),
            post(customs("watchlings"), a_custom("watchlings", "b")),
            Events(count=1, of="table"),
        ],
    ),
    Story(
        "the content type of a watch",
        [
            watch(MAPS, "plain"),
            watch(MAPS, "stream", accept="application/json;stream=watch"),
            watch(MAPS, "any", accept="*/*"),
            watch(MAPS, "none", accept=""),
            watch(MAPS, "other", accept="text/html"),
        ],
    ),
]
