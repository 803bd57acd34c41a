"""Records what a real API server prints, for tests without one: ``python -m tests.cluster.apiserver.tables.record``.

Takes the kubeconfig of a cluster of which nothing else is expected, and writes ``recorded.jsonl`` beside this file.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from tests.cluster.apiserver.tables.objects import all_cases
from tests.cluster.apiserver.tables.real_server import TABLE, Making, RealServer, Row, collection, facts

RECORDED = Path(__file__).with_name("recorded.jsonl")
_NAMESPACE = "recorded"
_KEPT = (
    "name",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
    "resourceVersion",
)


def record(kubeconfig: Path) -> None:
    server = RealServer(kubeconfig)
    kinds = {(kind.api_version, kind.kind): kind for kind in builtin_kinds(rules={})}
    server.demand("POST", "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    account = {"metadata": {"name": "default"}}
    server.request("POST", f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts", account)
    making = Making(server, _NAMESPACE)
    rows: dict[tuple[str, str], Row] = {}
    headers: list[Object] = []
    try:
        for case in all_cases(_NAMESPACE):
            making.make(kinds[case.api_version, case.kind], case)
        rows |= {(row.kind.api_version, row.name): row for row in making.rows}
        for kind in kinds.values():
            if "watch" in kind.verbs and (table := server.bookmark(collection(kind))):
                now = datetime.now(UTC)
                rows[kind.api_version, f"{kind.kind} bookmark"] = Row(kind, table["rows"][0], now, now)
                listed = server.demand("GET", f"{collection(kind)}?limit=1", accept=TABLE)
                headers.append({**_named(kind), "columns": facts(listed["columnDefinitions"])})
    finally:
        making.remove()
        server.request("DELETE", f"/api/v1/namespaces/{_NAMESPACE}")
    lines = [*headers, *(_line(row) for row in rows.values())]
    RECORDED.write_text("".join(f"{json.dumps(line, sort_keys=True, separators=(',', ':'))}\n" for line in lines))


def _line(row: Row) -> Object:
    metadata = {name: value for name, value in row.object["metadata"].items() if name in _KEPT}
    return {
        **_named(row.kind),
        "object": {**row.object, "metadata": metadata},
        "at": row.at.isoformat(),
        "cells": row.cells,
        **({"conditions": row.conditions} if row.conditions else {}),
    }


def _named(kind: Kind) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


if __name__ == "__main__":
    record(Path(sys.argv[1]))
