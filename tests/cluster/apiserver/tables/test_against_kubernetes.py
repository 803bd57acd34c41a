"""A real API server's tables and ours: the same columns, and for the same objects the same cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.tables import conditions, has_table, scale_cells, scale_columns
from shoal.cluster.kubernetes import RealKubernetes
from tests.cluster.apiserver.tables.custom_kinds import GROUP, a_definition, kind_of, objects, value_columns
from tests.cluster.apiserver.tables.objects import all_cases
from tests.cluster.apiserver.tables.real_server import TABLE, Making, RealServer, Row, collection, facts, table_rows
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kube, pytest.mark.slow]

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds(rules={})}
STORED_KINDS = [kind for kind in KINDS.values() if "list" in kind.verbs and kind.group != "metrics.k8s.io"]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def server(kube: RealKubernetes) -> Iterator[RealServer]:
    made = RealServer(kube.kubeconfig)
    yield made
    made.close()


@pytest.fixture
def define(server: RealServer) -> Iterator[Callable[[dict[str, Any]], Kind]]:
    """Makes custom kinds that are served until the test ends."""
    paths: list[str] = []

    def made(definition: dict[str, Any]) -> Kind:
        paths.append(f"{DEFINITIONS}/{definition['metadata']['name']}")
        server.demand("POST", DEFINITIONS, definition)
        kind = kind_of(definition)
        wait_until(partial(_is_served, server, kind), f"{kind.resource} to be served")
        return kind

    yield made
    for path in paths:
        server.request("DELETE", path)


def assert_equal(rows: list[Row]) -> None:
    differing = [f"{row.name}\n  real {row.cells}\n  ours {row.ours}" for row in rows if row.ours != row.cells]
    assert not differing, "\n".join(differing[:20])


def test_every_kind_in_every_state_is_printed_as_kubernetes_prints_it(server: RealServer, namespace: str) -> None:
    making = Making(server, namespace)
    try:
        for case in all_cases(namespace):
            making.make(KINDS[case.api_version, case.kind], case)
        listed = [row for kind in STORED_KINDS for row in table_rows(server, kind, "GET", collection(kind))]
        # In autoscaling/v1 the metrics have lost their order, and Kubernetes prints them as they are stored.
        new = {row.name: row for row in listed if row.kind.api_version == "autoscaling/v2"}
        for row in listed:
            if row.kind.api_version == "autoscaling/v1" and row.name in new:
                row.reprint(new[row.name].object, is_stored=True)
        assert_equal([*making.rows, *listed])
        assert [conditions(row.kind, row.object) for row in making.rows] == [row.conditions for row in making.rows]
    finally:
        making.remove()


def test_a_bookmark_is_printed_as_kubernetes_prints_it(server: RealServer) -> None:
    rows = []
    now = datetime.now(UTC)
    for kind in STORED_KINDS:
        if "watch" in kind.verbs and (table := server.bookmark(collection(kind))):
            rows += [Row(kind, row, now, now) for row in table["rows"]]
    assert len(rows) > 40
    assert_equal(rows)


def test_there_are_tables_where_kubernetes_has_them(server: RealServer) -> None:
    verbs = {"token": "POST", "binding": "POST", "eviction": "POST", "finalize": "PUT"}
    skipped = {"approval", "attach", "exec", "log", "portforward", "proxy"}
    answers = {}
    for kind in KINDS.values():
        if kind.group == "metrics.k8s.io" or kind.version == "v1alpha1":
            continue
        for subresource in {"", *kind.subresources} - skipped:
            method = verbs.get(subresource, "GET") if subresource or "get" in kind.verbs else "POST"
            home = collection(kind, "default" if kind.namespaced else "")
            path = home if not subresource and method == "POST" else f"{home}/no-such/{subresource}".rstrip("/")
            status, _ = server.request(method, path, None if method == "GET" else {}, accept=TABLE)
            answers[kind, subresource] = status != 406
    assert {place: has_table(*place) for place in answers} == answers


def test_a_custom_kind_is_printed_by_the_columns_of_its_definition(
    server: RealServer, namespace: str, define: Callable[[dict[str, Any]], Kind]
) -> None:
    for definition in (a_definition("valued", "Valued", columns=value_columns()), a_definition("plains", "Plain")):
        kind = define(definition)
        rows = []
        for body in objects().values():
            home = collection(kind, namespace)
            rows += table_rows(server, kind, "POST", home, {**body, "apiVersion": f"{GROUP}/v1", "kind": kind.kind})
        assert_equal(rows)
        assert_equal(table_rows(server, kind, "GET", collection(kind)))
        assert len(rows) == len(objects())


def test_a_scale_is_printed_as_kubernetes_prints_it(
    server: RealServer, namespace: str, define: Callable[[dict[str, Any]], Kind]
) -> None:
    paths = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    custom = define(a_definition("scaleds", "Scaled", scale=paths))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    bodies: dict[Kind, dict[str, Any]] = {
        KINDS["apps/v1", "Deployment"]: {"spec": spec},
        custom: {"spec": {"count": 3}},
    }
    for kind, body in bodies.items():
        named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "scaled"}}
        server.demand("POST", collection(kind, namespace), {**named, **body})
        path = f"{collection(kind, namespace)}/scaled/scale"
        before = datetime.now(UTC)
        table = server.demand("GET", f"{path}?includeObject=Object", accept=TABLE)
        assert facts(scale_columns(kind)) == facts(table["columnDefinitions"])
        (row,) = table["rows"]
        ours = [scale_cells(kind, row["object"], moment) for moment in (before, datetime.now(UTC))]
        assert row["cells"] in ours


def _is_served(server: RealServer, kind: Kind) -> bool:
    return server.request("GET", collection(kind))[0] == 200
