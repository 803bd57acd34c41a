"""Cases of structured merge as data: schemas in a short form, values, and what becomes of them.

``values.json`` holds single operations on values, ``sequences.json`` writes by several managers with the object and
the owners after each. Both carry the cases of structured-merge-diff's own test tables.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from shoal.cluster.apiserver.apply.shape import Shape, place_shape
from shoal.cluster.apiserver.schema import ListType, Schema

Case = dict[str, Any]
Node = dict[str, Any] | str


@cache
def table(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / f"{name}.json").read_text())
    return loaded


def cases(name: str) -> list[Case]:
    found: list[Case] = table(name)["cases"]
    return found


@cache
def shape(name: str, schema: str) -> Shape:
    """The shape of a case's values."""
    row = table(name)["schemas"][schema]
    return place_shape(_Reader(row["types"]).node(row["root"]))


class _Reader:
    def __init__(self, types: dict[str, Node]) -> None:
        self._types = types
        self._named: dict[str, Schema] = {}

    def node(self, row: Node) -> Schema:
        if isinstance(row, str):
            if row not in self._named:
                self._named[row] = Schema()
                self._fill(self._named[row], self._types[row])
            return self._named[row]
        schema = Schema()
        self._fill(schema, row)
        return schema

    def _fill(self, schema: Schema, row: Node) -> None:
        if isinstance(row, str):
            row = self._types[row]
        if isinstance(row, str):
            raise TypeError(row)
        if "of" in row:
            self._fill(schema, row["of"])
            if relationship := row.get("relationship"):
                schema.is_atomic = relationship == "atomic"
                schema.list_type = ListType.SET if relationship == "associative" else ListType.ATOMIC
            if "default" in row:
                schema.default = row["default"]
            return
        forms = [form for form in ("scalar", "list", "map") if form in row]
        if forms == ["scalar"]:
            schema.type, schema.format = row["scalar"], ""
            if row["scalar"] == "any":
                schema.type, schema.format = "string", "any"
        elif len(forms) == 1:
            schema.type = "array" if forms == ["list"] else "object"
        if "list" in row:
            schema.items = self.node(row["list"]["items"])
            schema.list_keys = tuple(row["list"].get("keys", ()))
            if schema.list_keys:
                schema.list_type = ListType.MAP
            elif row["list"].get("set"):
                schema.list_type = ListType.SET
        if "map" in row:
            fields = row["map"].get("fields", {})
            schema.properties = {name: self.node(field) for name, field in fields.items()}
            schema.is_atomic = row["map"].get("atomic", False)
            if "element" in row["map"]:
                schema.additional = self.node(row["map"]["element"])
