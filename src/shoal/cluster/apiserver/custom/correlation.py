"""Which part of the old object a part of the new one came from.

A value that was wrong already and has not been touched is tolerated when an object is updated, so that a stricter
schema does not lock what is stored. Items of a list are found again where the list is a map by keys, and nowhere else.
"""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]


class Correlation:
    """A part of the new object beside the part of the old one that it comes from."""

    __slots__ = ("_by_key", "_is_equal", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Raw) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._is_equal: bool | None = None
        self._by_key: dict[Any, Any] | None = None

    def field(self, name: str) -> Correlation | None:
        """The same for a field, if both objects have it."""
        if type(self.new) is not dict or type(self.old) is not dict:
            return None
        if name not in self.new or name not in self.old:
            return None
        schema = (self.schema.get("properties") or {}).get(name)
        if schema is None:
            schema = self.schema.get("additionalProperties")
            if not isinstance(schema, dict):
                return None
        return Correlation(self.new[name], self.old[name], schema)

    def item(self, at: int) -> Correlation | None:
        """The same for an item of a list that is a map by keys."""
        old = self.old_item(self.new[at]) if type(self.new) is list else None
        schema = self.schema.get("items")
        return None if old is None or schema is None else Correlation(self.new[at], old, schema)

    def old_item(self, item: Any) -> Any:
        """The old item with the keys of this one."""
        if self.schema.get("x-kubernetes-list-type") != "map" or type(self.old) is not list:
            return None
        keys = tuple(self.schema.get("x-kubernetes-list-map-keys") or ())
        if self._by_key is None:
            self._by_key = {}
            for each in self.old:
                if type(each) is dict:
                    self._by_key.setdefault(_key(each, keys), each)
        return self._by_key.get(_key(item, keys)) if type(item) is dict else None

    @property
    def is_equal(self) -> bool:
        """Whether nothing has changed; the order of a list that is a map by keys does not count."""
        if self._is_equal is None:
            self._is_equal = self._compare()
        return self._is_equal

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if new is None or old is None:
            return new is old
        if new == old:
            return True
        if type(new) is dict and type(old) is dict and new.keys() == old.keys():
            fields = (self.field(name) for name in new)
            return all(each is not None and each.is_equal for each in fields)
        if type(new) is list and type(old) is list and len(new) == len(old):
            items = (self.item(at) for at in range(len(new)))
            return all(each is not None and each.is_equal for each in items)
        return False


def _key(item: Raw, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_hashable(item.get(key)) for key in keys)


def _hashable(value: Any) -> Any:
    return repr(value) if type(value) in (list, dict) else value
