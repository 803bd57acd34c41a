"""How events are printed: what happened to which object, and when first and last."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import age
from shoal.cluster.apiserver.tables.printer import Printer, Printers, column, metadata_of, part_of, wide

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go takes for white space."""


def _event(value: Object, now: datetime) -> list[Any]:
    first = age(value.get("firstTimestamp") or value.get("eventTime"), now)
    last = age(value.get("lastTimestamp"), now) if value.get("lastTimestamp") else first
    count = value.get("count") or 1
    if (series := value.get("series")) is not None:
        last, count = age(series.get("lastObservedTime"), now), series.get("count") or 0
    about, source = part_of(value, "involvedObject"), part_of(value, "source")
    kind, name = (about.get("kind") or "").lower(), about.get("name")
    component = source.get("component") or value.get("reportingComponent") or ""
    instance = source.get("host") or value.get("reportingInstance")
    return [
        last,
        value.get("type") or "",
        value.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath") or "",
        f"{component}, {instance}" if instance else component,
        (value.get("message") or "").strip(_SPACE),
        first,
        count,
        metadata_of(value).get("name") or "",
    ]


_EVENT = Printer(
    [
        column("Last Seen", "Time since it last happened."),
        column("Type", "Whether it is normal or a warning."),
        column("Reason", "What happened, in a word."),
        column("Object", "The object that it happened to."),
        wide("Subobject", "The part of the object."),
        wide("Source", "Who reports it."),
        column("Message", "What happened."),
        wide("First Seen", "Time since it first happened."),
        wide("Count", "How often it happened."),
        column("Name", "Name of the event.", format="name", priority=1),
    ],
    _event,
)

PRINTERS: Printers = {("", "Event"): _EVENT, ("events.k8s.io", "Event"): _EVENT}
