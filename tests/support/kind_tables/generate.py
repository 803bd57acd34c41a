"""Writes the kind tables of the embedded API server: one line for each resource and each type, without prose.

Go's types know how a field is written and numbered; a real server knows how lists merge and what is served. Nothing is
stated here but which group versions and bodies are wanted; what no server of this release serves is in by_hand.json.
From the same facts come the schemas of types that CRDs embed.

    python -m tests.support.kind_tables.generate    write the tables anew
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.api.crd import kubernetes_types
from tests.support.kind_tables import embedded_schemas, go_types, server_facts
from tests.support.kind_tables.server_facts import ServerFacts

TABLES = Path(__file__).parents[3] / "src" / "shoal" / "cluster" / "apiserver" / "kinds" / "tables.json"

GROUP_VERSIONS = [
    "v1",
    "apps/v1",
    "batch/v1",
    "policy/v1",
    "autoscaling/v2",
    "autoscaling/v1",
    "rbac.authorization.k8s.io/v1",
    "coordination.k8s.io/v1",
    "networking.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
    "node.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "resource.k8s.io/v1",
    "certificates.k8s.io/v1",
]
NOT_SERVED = re.compile(r"(validating|mutating)admissionpolic.*")  # a policy that nobody enforces is worse than none
BODIES = [
    "meta.v1.CreateOptions",
    "meta.v1.DeleteOptions",
    "meta.v1.ListMeta",
    "meta.v1.PartialObjectMetadata",
    "meta.v1.PatchOptions",
    "meta.v1.Status",
    "meta.v1.UpdateOptions",
    "admission.v1.AdmissionReview",
    "apiextensions.v1.ConversionReview",
]
EXAMPLES = Path(__file__).parents[2] / "cluster" / "apiserver" / "kinds" / "examples.jsonl"
EXAMPLE_KINDS = {
    "ConfigMap",
    "CronJob",
    "CustomResourceDefinition",
    "DeleteOptions",
    "Deployment",
    "Event",
    "HorizontalPodAutoscaler",
    "Job",
    "Lease",
    "Node",
    "NodeMetrics",
    "PersistentVolume",
    "Pod",
    "PodDisruptionBudget",
    "ResourceClaim",
    "Role",
    "Scale",
    "Secret",
    "Service",
    "SubjectAccessReview",
    "TokenRequest",
    "ValidatingWebhookConfiguration",
    "Workload",
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """All that is known: from Go, from a server, and by hand."""

    kinds: dict[str, str]
    types: dict[str, Row]
    schemas: dict[str, Row]
    resources: dict[str, list[Row]]

    @classmethod
    def of(cls, server: ServerFacts) -> Facts:
        """The facts of a server, of Go, and those that are stated by hand since neither of this release has them."""
        by_hand = json.loads((Path(__file__).parent / "by_hand.json").read_text())
        described = go_types.describe()
        types, schemas = {**described["types"], **by_hand["types"]}, {**server.schemas, **by_hand["schemas"]}
        for name, fields in by_hand["fields"].items():
            types[name]["fields"] += fields
            known = schemas[_openapi_name(types[name]["package"], name)]["properties"]
            for field in fields:
                inner = types[field["type"].removeprefix("*")]["package"], field["type"].removeprefix("*")
                known[field["name"]] = {"allOf": [{"$ref": _openapi_name(*inner)}]}
        return cls(described["kinds"], types, schemas, {**server.resources, **by_hand["resources"]})


def tables(facts: Facts) -> str:
    """The text of the tables."""
    types = {name: _type_row(each) for name, each in facts.types.items()}
    _check_messages(facts.types)
    for name, each in facts.types.items():
        if schema := facts.schemas.get(_openapi_name(each["package"], name)):
            _add_schema(types, name, schema)
    resources = list(_resource_rows(facts.resources, facts.kinds))
    wanted = BODIES + [name for row in resources for name in _types_of(row)]
    reached = sorted(_reached(types, wanted))
    resource_lines = ",\n".join(_compact(row) for row in resources)
    type_lines = ",\n".join(f"{_compact(name)}:{_compact(types[name])}" for name in reached)
    return f'{{"resources":[\n{resource_lines}\n],"types":{{\n{type_lines}\n}}}}\n'


def _type_row(described: Row) -> Row:
    if described.get("special"):
        return {"special": True}
    if base := described.get("base"):
        return {"base": base}
    fields = described.get("fields", [])
    row: Row = {"fields": {field["name"]: _field_row(field) for field in fields if "name" in field}}
    inlined = [{"type": field["type"], "number": field.get("number", 0)} for field in fields if "name" not in field]
    return row | ({"inlined": inlined} if inlined else {})


def _check_messages(types: dict[str, Row]) -> None:
    """A list that protobuf wraps in a message is known by its place: it is the value of a map, and nowhere else."""
    messages = {name for name, each in types.items() if each.get("message")} - {"meta.v1.Verbs"}  # of discovery alone
    for name, each in types.items():
        for field in each.get("fields", ()):
            if re.sub(r"^(map\[string\]|\[\]|\*)*", "", field["type"]) in messages and "map[" not in field["type"]:
                raise SystemExit(f"{name}.{field['name']} is a list that protobuf wraps, and no value of a map")


def _field_row(field: Row) -> Row:
    """What Go says; how protobuf writes a value follows from its type (the tag's word for it is often wrong)."""
    row: Row = {"type": field["type"], "number": field.get("number", 0)}
    if field.get("omitZero"):
        row["omit"] = "zero"
    elif not field.get("omitEmpty"):
        row["omit"] = "never"
    if strategy := field.get("patchStrategy"):
        row["strategies"] = strategy.split(",")
    if key := field.get("patchMergeKey"):
        row["merge_key"] = key
    return row


def _add_schema(types: dict[str, Row], name: str, schema: Row) -> None:
    row = types[name]
    if schema.get("x-kubernetes-map-type") == "atomic":
        row["atomic"] = True
    if "fields" not in row:
        return
    for field, place in schema.get("properties", {}).items():
        owner = _owner(types, name, field)
        facts = _place_row(place)
        for key, value in facts.items():
            # A struct that is part of several others is told of several times, each time alike.
            if owner["fields"][field].setdefault(key, value) != value:
                raise SystemExit(f"{name}.{field}: {key} is {owner['fields'][field][key]} and {value}")
    for field in sorted(schema.get("required", ())):
        required = _owner(types, name, field).setdefault("required", [])
        if field not in required:
            required.append(field)


def _owner(types: dict[str, Row], name: str, field: str) -> Row:
    """The row of the struct that has a field: the one named, or one that is inlined in it."""
    row = types[name]
    if field in row["fields"]:
        return row
    for part in row.get("inlined", ()):
        try:
            return _owner(types, part["type"], field)
        except KeyError:
            continue
    raise KeyError(f"{name} has no field {field}")


def _place_row(place: Row) -> Row:
    row: Row = {}
    list_type = place.get("x-kubernetes-list-type")
    keys = place.get("x-kubernetes-list-map-keys", [])
    if list_type is None and "merge" in place.get("x-kubernetes-patch-strategy", "").split(","):
        # The server takes the strategy for the list type where none is declared.
        merge_key = place.get("x-kubernetes-patch-merge-key")
        list_type, keys = ("map", [merge_key]) if merge_key else ("set", [])
    if list_type and list_type != "atomic" and place.get("type", "array") == "array":
        row["list"] = list_type
    if keys:
        row["keys"] = keys
    if place.get("x-kubernetes-map-type") == "atomic":
        row["atomic"] = True
    if "default" in place:
        row["default"] = place["default"]
    if values := place.get("enum") or place.get("items", {}).get("enum"):
        row["enum"] = values
    return row


def _resource_rows(listed: dict[str, list[Row]], kinds: dict[str, str]) -> Iterator[Row]:
    for group_version, resources in listed.items():
        group, _, version = group_version.rpartition("/")
        for resource in resources:
            name = resource["name"]
            if "/" in name or NOT_SERVED.fullmatch(name):
                continue
            row = {
                "group": group,
                "version": version,
                "kind": resource["kind"],
                "resource": name,
                "singular": resource["singularName"],
                "type": kinds[f"{group}/{version}/{resource['kind']}"],
                "namespaced": resource["namespaced"],
                "verbs": resource["verbs"],
            }
            for key, said in (("short_names", "shortNames"), ("categories", "categories")):
                if resource.get(said):
                    row[key] = resource[said]
            if parts := {
                each["name"].removeprefix(f"{name}/"): _subresource_row(row, each, kinds)
                for each in resources
                if each["name"].startswith(f"{name}/")
            }:
                row["subresources"] = parts
            yield row


def _subresource_row(owner: Row, listed: Row, kinds: dict[str, str]) -> Row:
    group, version = listed.get("group", owner["group"]), listed.get("version", owner["version"])
    row = {"group": group, "version": version, "kind": listed["kind"], "verbs": listed["verbs"]}
    if (group, version, listed["kind"]) != (owner["group"], owner["version"], owner["kind"]):
        row["type"] = kinds[f"{group}/{version}/{listed['kind']}"]
    return row


def _types_of(resource: Row) -> list[str]:
    parts = [part["type"] for part in resource.get("subresources", {}).values() if "type" in part]
    return [resource["type"], *parts]


def _reached(types: dict[str, Row], wanted: list[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(wanted)
    while waiting:
        for name in re.findall(r"[\w.]+\.\w+", waiting.pop()):
            if name not in reached:
                reached.add(name)
                row = types[name]
                waiting += [row.get("base", ""), *(part["type"] for part in row.get("inlined", ()))]
                waiting += [field["type"] for field in row.get("fields", {}).values()]
                # Types that write their JSON by themselves hold what Go keeps beside it.
                waiting += ["apiextensions.v1.JSONSchemaProps"] if "JSONSchemaPropsOr" in name else []
    return reached


def _openapi_name(package: str, name: str) -> str:
    host, _, rest = re.sub(r"^shoal\.dev/kubernetes-[\d.]+", "k8s.io", package).partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/"), name.rpartition(".")[2]])


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def examples() -> str:
    """The text of the examples that quick tests read: random objects of a few kinds, as Go writes them."""
    made = [each for each in go_types.examples(seed=1, count=75) if each["kind"] in EXAMPLE_KINDS]
    return "".join(f"{_compact(each)}\n" for each in made)


def texts() -> dict[Path, str]:
    """Every file that is made here, and what is in it."""
    facts = Facts.of(server_facts.of_fresh(GROUP_VERSIONS))
    embedded = embedded_schemas.schemas(facts.schemas, facts.types)
    return {TABLES: tables(facts), EXAMPLES: examples(), kubernetes_types.TYPES: embedded}


def main() -> int:
    """Writes the tables, the examples and the schemas."""
    for path, text in texts().items():
        changed = not path.exists() or path.read_text() != text
        path.write_text(text)
        print(f"kind-tables: {path.name} {'written' if changed else 'is as it was'}, {len(text) // 1000} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
