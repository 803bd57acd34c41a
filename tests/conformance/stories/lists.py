"""Lists: selectors, pages, resource versions, and how bad questions are refused."""

from __future__ import annotations

from tests.conformance.objects import a_bare_node, a_bare_pod, a_config_map, a_custom, a_definition, customs, defined
from tests.conformance.story import CORE, PARTIAL_LIST, Request, Story, delete, get, post, put, status_is

MAPS = f"{CORE}/configmaps"
PODS = f"{CORE}/pods"


def maps(*names: str) -> list[Request]:
    return [post(MAPS, a_config_map(name, labels={"n": name, "group": "x"}), accept="") for name in names]


def listed(**query: str) -> Request:
    return get(MAPS, query=query)


def selected(selector: str) -> Request:
    return get(MAPS, query={"labelSelector": selector}, shown=names)


def names(body: dict[str, object]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]  # type: ignore[attr-defined]


STORIES = [
    Story("an empty list", [listed(), get(PODS), get(MAPS, accept=PARTIAL_LIST)]),
    Story("a list of some", [*maps("b", "a"), listed(), get(MAPS, accept=PARTIAL_LIST)]),
    Story(
        "label selectors",
        [
            post(MAPS, a_config_map("a", labels={"tier": "web", "env": "prod"})),
            post(MAPS, a_config_map("b", labels={"tier": "db", "env": "prod"})),
            post(MAPS, a_config_map("c", labels={"tier": "web"})),
            post(MAPS, a_config_map("d")),
            *[
                selected(selector)
                for selector in (
                    "tier=web",
                    "tier==web",
                    "tier!=web",
                    "tier in (web,db)",
                    "tier notin (web)",
                    "env",
                    "!env",
                    "tier=web,env=prod",
                    "tier=",
                    "tier in (web),!env",
                    "",
                )
            ],
        ],
    ),
    Story(
        "label selectors that are refused",
        [
            selected(selector)
            for selector in ("a=b=c", "=x", "a in b", "a in (", "-bad=x", "a=-x", "a=x,", "a b", "a>x", "!", "a in ()")
        ],
    ),
    Story(
        "field selectors of every kind",
        [
            *maps("a", "b"),
            get(MAPS, query={"fieldSelector": "metadata.name=a"}, shown=names),
            get(MAPS, query={"fieldSelector": "metadata.name!=a"}, shown=names),
            get(MAPS, query={"fieldSelector": "metadata.namespace={ns},metadata.name=b"}, shown=names),
            get("/api/v1/configmaps", query={"fieldSelector": "metadata.namespace={ns}"}, shown=names),
            get(MAPS, query={"fieldSelector": "data.a=b"}),
            get(MAPS, query={"fieldSelector": "metadata.uid=b"}),
            get(MAPS, query={"fieldSelector": "metadata.name"}),
            get(MAPS, query={"fieldSelector": "metadata.name=a\\,b"}, shown=names),
            get(MAPS, query={"fieldSelector": "metadata.name>a"}),
            get(f"{MAPS}/a", query={"fieldSelector": "metadata.name=b"}),
        ],
    ),
    Story(
        "field selectors of pods",
        [
            post(PODS, a_bare_pod("a", nodeName="n1")),
            post(PODS, a_bare_pod("b", restartPolicy="Never", schedulerName="mine")),
            *[
                get(PODS, query={"fieldSelector": selector}, shown=names)
                for selector in (
                    "spec.nodeName=n1",
                    "spec.nodeName=",
                    "status.phase=Pending",
                    "status.phase!=Pending",
                    "spec.restartPolicy=Never",
                    "spec.schedulerName=mine",
                    "spec.serviceAccountName=default",
                    "spec.hostNetwork=false",
                    "status.podIP=",
                    "status.nominatedNodeName=",
                )
            ],
            get(PODS, query={"fieldSelector": "spec.unknown=1"}),
            get(PODS, query={"fieldSelector": "status.hostIP=1"}),
        ],
        account=True,
    ),
    Story(
        "field selectors of other kinds",
        [
            post(f"{CORE}/secrets", {"metadata": {"name": "a"}, "type": "example.com/own"}),
            get(f"{CORE}/secrets", query={"fieldSelector": "type=example.com/own"}, shown=names),
            post("/api/v1/nodes", a_bare_node("list-node")),
            get("/api/v1/nodes", query={"fieldSelector": "metadata.name=list-node"}, shown=names),
            get(
                "/api/v1/nodes", query={"fieldSelector": "metadata.name=list-node,spec.unschedulable=true"}, shown=names
            ),
            get("/api/v1/namespaces", query={"fieldSelector": "metadata.name={ns},status.phase=Active"}, shown=names),
            get("/apis/apps/v1/deployments", query={"fieldSelector": "spec.replicas=1"}),
            get("/apis/batch/v1/jobs", query={"fieldSelector": "status.successful=1"}, shown=names),
            get("/api/v1/services", query={"fieldSelector": "spec.type=LoadBalancer"}, shown=names),
        ],
    ),
    Story(
        "pages",
        [
            *maps("a", "b", "c", "d", "e"),
            get(MAPS, query={"limit": "2"}, called="first"),
            get(MAPS, query={"limit": "2", "continue": "{first.metadata.continue}"}, called="second"),
            get(MAPS, query={"limit": "2", "continue": "{second.metadata.continue}"}),
            get(MAPS, query={"limit": "2", "labelSelector": "n in (a,c,e)"}, called="chosen"),
            get(MAPS, query={"limit": "2", "labelSelector": "n in (a,c,e)", "continue": "{chosen.metadata.continue}"}),
            get(MAPS, query={"limit": "5"}, shown=lambda body: {"metadata": body["metadata"]}),
            get(MAPS, query={"limit": "0"}, shown=lambda body: {"metadata": body["metadata"]}),
        ],
    ),
    Story(
        "pages stay what they were when objects change",
        [
            *maps("a", "b", "c", "d"),
            get(MAPS, query={"limit": "2"}, called="first", shown=names),
            delete(f"{MAPS}/c"),
            put(f"{MAPS}/d", a_config_map("d", data={"changed": "yes"})),
            post(MAPS, a_config_map("bb")),
            get(MAPS, query={"limit": "9", "continue": "{first.metadata.continue}"}),
        ],
    ),
    Story(
        "pages that are refused",
        [
            *maps("a", "b", "c"),
            get(MAPS, query={"limit": "1"}, called="first", shown=names),
            listed(**{"continue": "junk"}),
            listed(**{"continue": "eyJ2IjoidjEifQ"}),
            listed(limit="1", **{"continue": "{first.metadata.continue}"}, resourceVersion="5"),
            listed(limit="1", **{"continue": "{first.metadata.continue}"}, resourceVersionMatch="NotOlderThan"),
            listed(limit="minus"),
            listed(limit="-1"),
        ],
    ),
    Story(
        "resource versions of lists",
        [
            post(MAPS, a_config_map("a"), called="a"),
            post(MAPS, a_config_map("b"), called="b"),
            listed(resourceVersion="{b.metadata.resourceVersion}"),
            listed(resourceVersion="{b.metadata.resourceVersion}", resourceVersionMatch="NotOlderThan"),
            listed(resourceVersion="{a.metadata.resourceVersion}", resourceVersionMatch="Exact"),
            listed(resourceVersion="0", resourceVersionMatch="Exact"),
            listed(resourceVersionMatch="Exact"),
            listed(resourceVersionMatch="NotOlderThan"),
            listed(resourceVersion="1", resourceVersionMatch="Bogus"),
            listed(resourceVersion="junk"),
            listed(resourceVersion="-5"),
            listed(resourceVersion="1.5"),
            listed(resourceVersion="0", sendInitialEvents="true"),
        ],
    ),
    Story(
        "a version of the future is not there yet",
        [get(MAPS, query={"resourceVersion": "999999999"})],
    ),
    Story(
        "lists over all namespaces",
        [
            *maps("a"),
            get(
                "/api/v1/configmaps", query={"labelSelector": "n=a,group=x", "fieldSelector": "metadata.namespace={ns}"}
            ),
            get("/api/v1/namespaces/no-such-namespace/configmaps"),
        ],
    ),
    Story(
        "lists of custom objects",
        [
            *defined(a_definition("listlings")),
            post(customs("listlings"), a_custom("listlings", "a"), until=status_is(201)),
            post(customs("listlings"), a_custom("listlings", "b", spec={"size": 3})),
            get(customs("listlings")),
            get(customs("listlings"), query={"limit": "1"}),
            get(customs("listlings"), query={"fieldSelector": "metadata.name=b"}),
            get(customs("listlings"), query={"fieldSelector": "spec.size=3"}),
            get(customs("listlings"), accept=PARTIAL_LIST),
        ],
    ),
    Story(
        "a list may be asked for as something else",
        [
            get(MAPS, accept="application/json;as=Unicorn;v=v1;g=meta.k8s.io"),
            get(MAPS, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
            get(MAPS, accept="application/json;as=Table;v=v7;g=meta.k8s.io"),
            get(MAPS, accept="application/json;as=Table;v=v7;g=meta.k8s.io,application/json"),
        ],
    ),
]
