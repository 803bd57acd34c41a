"""Sharing equal labels and fields: a thousand pods of one set carry one mapping, not a thousand."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType

import msgspec

NONE: Mapping[str, str] = MappingProxyType({})
_MOST = 20_000

_TEXTS = msgspec.json.Decoder(dict[str, str])


class SharedMappings:
    """Gives back the mapping that was seen first among equal ones.

    It forgets everything now and then: what is shared stays shared, and it need not know what has died.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, Mapping[str, str]] = {}

    def of(self, mapping: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
        """A mapping of an object whose earlier state had ``before``."""
        if not mapping:
            return NONE
        if mapping == before:
            return before
        return self._kept(tuple(mapping.items()), mapping)

    def decoded(self, text: bytes) -> Mapping[str, str]:
        """A mapping from its JSON, which is decoded where it was not seen before."""
        if not text or text == b"{}":
            return NONE
        known = self._seen.get(text)
        return known if known is not None else self._kept(text, _TEXTS.decode(text))

    def _kept(self, key: Hashable, mapping: Mapping[str, str]) -> Mapping[str, str]:
        if len(self._seen) >= _MOST:
            self._seen.clear()
        return self._seen.setdefault(key, mapping)
