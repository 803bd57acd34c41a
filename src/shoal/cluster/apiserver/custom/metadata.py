"""apiVersion, kind and metadata, of the object and of those embedded in it: their types, and what they may hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.builtin.metadata import object_meta_problems
from shoal.cluster.apiserver.builtin.names import dns1035_problems, path_segment_problems
from shoal.cluster.apiserver.custom.places import Key, Place, dotted, field_path
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.wording import Raw
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.kube.admission.fields import FieldProblem, invalid, required

Visit = Callable[[dict[str, Any], Place], None]
Walk = Callable[[Any, Place, Visit], None]


@by_content
def compile_embedded(raw: Raw) -> Walk | None:
    """Finds the objects embedded in a value, outer before inner; None where there are none."""
    declared = raw.get("properties") or {}
    children = {name: found for name, child in declared.items() if (found := compile_embedded(child)) is not None}
    additional = raw.get("additionalProperties")
    rest = compile_embedded(additional) if isinstance(additional, dict) else None
    items = raw.get("items")
    each = compile_embedded(items) if isinstance(items, dict) else None
    is_embedded = bool(raw.get("x-kubernetes-embedded-resource"))
    if not (is_embedded or children or rest or each):
        return None

    def walk(value: Any, place: Place, visit: Visit) -> None:
        if type(value) is dict:
            if is_embedded:
                visit(value, place)
            for name, item in value.items():
                child = children.get(name)
                if child is not None:
                    child(item, (place, name), visit)
                elif rest is not None and name not in declared:
                    rest(item, (place, Key(name)), visit)
        elif type(value) is list and each is not None:
            for at, item in enumerate(value):
                each(item, (place, at), visit)

    return walk


def coerce_metadata(value: dict[str, Any], place: Place, unknown: list[str] | None) -> None:
    """Brings metadata into the form that Go gives it; raises ValueError, with the API server's words, if it cannot."""
    for name in ("apiVersion", "kind"):
        if name in value and type(value[name]) is not str:
            raise ValueError(str(invalid(field_path((place, name)), value[name], "must be a string")))
    if "metadata" not in value:
        return
    given = value["metadata"]
    dropped: list[str] = []
    try:
        value["metadata"] = decode(type_schema("meta.v1.ObjectMeta"), given, dropped)
    except WrongType as error:
        told = str(error) if place is None else str(invalid(field_path((place, "metadata")), given, str(error)))
        raise ValueError(told) from None
    if value["metadata"].get("creationTimestamp", "") is None:
        del value["metadata"]["creationTimestamp"]
    if unknown is not None and dropped:
        start = dotted((place, "metadata"))
        unknown.extend(f'unknown field "{start}.{each.partition(chr(34))[2]}' for each in dropped)


def embedded_problems(value: dict[str, Any], place: Place) -> list[FieldProblem]:
    """What is wrong with an object inside another."""
    problems = [required(field_path((place, name))) for name in ("apiVersion", "kind") if name not in value]
    for name, item in value.items():
        path = field_path((place, name))
        if name in ("apiVersion", "kind"):
            if type(item) is not str:
                problems.append(invalid(path, item, "must be a string"))
            elif not item:
                problems.append(invalid(path, item, "must not be empty"))
            elif name == "apiVersion" and item.count("/") > 1:
                problems.append(invalid(path, item, f"unexpected GroupVersion string: {item}"))
            elif name == "kind" and (faults := dns1035_problems(item.lower())):
                told = "may have mixed case, but should otherwise match: " + ",".join(faults)
                problems.append(invalid(path, item, told))
        elif name == "metadata":
            try:
                metadata = decode(type_schema("meta.v1.ObjectMeta"), item, [])
            except WrongType as error:
                problems.append(invalid(path, item, str(error)))
                continue
            metadata["name"] = metadata.get("name") or "fakename"
            problems += object_meta_problems(
                metadata,
                path,
                namespaced=bool(metadata.get("namespace")),
                rule=path_segment_problems,
                is_custom=True,
            )
    return problems
