"""metrics.k8s.io: how much nodes and pods use, as ``kubectl top`` and autoscalers read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from shoal.api.meta import now
from shoal.cluster.apiserver.calls import Answer, json_answer
from shoal.cluster.apiserver.front.negotiation import Form, Representation, negotiated
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.nodes.agents import NODES
from shoal.cluster.apiserver.nodes.scraping import Scraper
from shoal.cluster.apiserver.nodes.usage import Readings, Series, node_metrics, pod_metrics
from shoal.cluster.apiserver.refusals import not_found
from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import Record
from shoal.cluster.apiserver.tables import cells, columns
from shoal.cluster.apiserver.verbs.asked import Asked, Outcome
from shoal.cluster.apiserver.verbs.list_options import list_options
from shoal.cluster.apiserver.verbs.selection import selection

_PODS = "pods"
_NODE_NAME = "spec.nodeName"
_PHASE = "status.phase"


class UsageMetrics:
    """Answers requests on the two resources of the group."""

    def __init__(self, state: State, scraper: Scraper) -> None:
        self._state = state
        self._scraper = scraper

    async def list_nodes(self, asked: Asked) -> Outcome | Answer:
        """The nodes that tell their usage."""
        return _listed(asked, await self._nodes(self._selected(asked, NODES)))

    async def get_node(self, asked: Asked) -> Outcome:
        """One node's usage."""
        record = self._state.store.get(NODES, "", asked.name)
        found = await self._nodes([record] if record is not None else [])
        if not found:
            raise not_found("nodemetrics", asked.kind.group, asked.name)
        return _one(asked, found[0])

    async def list_pods(self, asked: Asked) -> Outcome | Answer:
        """The pods that run and whose nodes tell their usage."""
        return _listed(asked, await self._pods(self._selected(asked, _PODS)))

    async def get_pod(self, asked: Asked) -> Outcome:
        """One pod's usage."""
        record = self._state.store.get(_PODS, asked.namespace, asked.name)
        if record is None:
            raise not_found(_PODS, "", f"{asked.namespace}/{asked.name}")
        found = await self._pods([record])
        if not found:
            raise not_found("podmetrics", asked.kind.group, f"{asked.namespace}/{asked.name}")
        return _one(asked, found[0])

    def _selected(self, asked: Asked, storage: str) -> list[Record]:
        """The objects that the usage asked for is of: they have the labels."""
        options = list_options(asked.call)
        selects = selection(asked.kind, options.labels, options.fields).selects
        return self._state.store.page(storage, asked.namespace or None, selects=selects).records

    async def _nodes(self, records: list[Record]) -> list[Object]:
        readings = await self._scraper.readings(record.name for record in records)
        moment = now()
        found = []
        for record in records:
            usage = readings[record.name].node.usage() if record.name in readings else None
            if usage is not None:
                found.append(node_metrics(record.name, record.labels, usage, now=moment))
        return found

    async def _pods(self, records: list[Record]) -> list[Object]:
        running = [record for record in records if record.fields.get(_PHASE) == "Running"]
        readings = await self._scraper.readings({record.fields.get(_NODE_NAME) or "" for record in running} - {""})
        series = _by_pod(readings.items())
        moment = now()
        found = []
        for record in running:
            known = series.get((record.fields.get(_NODE_NAME, ""), record.namespace, record.name), ())
            metrics = pod_metrics(record.namespace, record.name, record.labels, known, now=moment)
            if metrics is not None:
                found.append(metrics)
        return found


def _by_pod(readings: Iterable[tuple[str, Readings]]) -> dict[tuple[str, str, str], list[tuple[str, Series]]]:
    """The containers' series by node, namespace and pod: a node speaks for its own pods alone."""
    series: dict[tuple[str, str, str], list[tuple[str, Series]]] = defaultdict(list)
    for node, told in readings:
        for container, one in told.containers.items():
            series[node, container.namespace, container.pod].append((container.name, one))
    return series


def _listed(asked: Asked, items: list[Object]) -> Outcome | Answer:
    representation = negotiated(asked.call.headers.get("accept", ""))
    kind = asked.kind
    if representation.form is Form.TABLE:
        return Outcome(kind=kind, object=_table(kind, items, representation, asked.call.value("includeObject")))
    if representation.is_metadata:
        version = f"meta.k8s.io/{representation.version}"
        shown = [{"metadata": item["metadata"]} for item in items]
        return json_answer({"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": {}, "items": shown})
    value = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": {}, "items": items}
    return Outcome(kind=kind, object=value)


def _one(asked: Asked, value: Object) -> Outcome:
    representation = negotiated(asked.call.headers.get("accept", ""))
    kind = asked.kind
    if representation.form is Form.TABLE:
        return Outcome(kind=kind, object=_table(kind, [value], representation, asked.call.value("includeObject")))
    return Outcome(kind=kind, object={"kind": kind.kind, "apiVersion": kind.api_version, **value})


def _table(kind: Kind, items: list[Object], representation: Representation, include: str) -> Object:
    moment = now()
    version = f"meta.k8s.io/{representation.version}"
    rows = []
    for item in items:
        row: Object = {"cells": cells(kind, item, moment)}
        if include == "Object":
            row["object"] = {"kind": kind.kind, "apiVersion": kind.api_version, **item}
        elif include != "None":
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": item["metadata"]}
        rows.append(row)
    return {"kind": "Table", "apiVersion": version, "metadata": {}, "columnDefinitions": columns(kind), "rows": rows}
