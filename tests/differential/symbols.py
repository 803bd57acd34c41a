"""Symbols for what is made up anew in every cluster: the same thing has the same symbol in all of a telling.

An object whose name was generated is known by its whole life: what it looked like in every snapshot. Objects are
numbered in that order, so that which of several equals was chosen for deletion makes no difference, and one that
survives has the same symbol before and after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.differential.compared import compared, shown
from tests.differential.mirror import Object
from tests.differential.story import Snapshot

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_RECENT = timedelta(days=2)
_POOL_NODE = re.compile(r"\bpool-\d\b")
_ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_TOKEN_VOLUME = re.compile(rf"kube-api-access-{_RANDOM}\b")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHOSEN_UID = "00000000"
"""How uids begin that a story made up itself."""
_HASH_LABELS = ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash")
_MAKERS = ("ReplicaSet", "ReplicationController", "Job", "DaemonSet", "StatefulSet")
# A CronJob calls its Jobs by the minute that they are of.
_MINUTE = re.compile(r"(?<=-)\d{8}\b")
_NOTHING = re.compile(r"(?!)")


@dataclass
class _Life:
    """What an object looked like in each snapshot that it is in."""

    uid: str
    kind: str
    looks: dict[int, Object] = field(default_factory=dict)

    @property
    def metadata(self) -> Object:
        """Of its first look: an update may forget how the name came about."""
        metadata: Object = next(iter(self.looks.values()))["metadata"]
        return metadata

    @property
    def name(self) -> str:
        return str(self.metadata["name"])


class Symbols:
    """What stands for each name, hash, uid and address that was made up."""

    def __init__(self, taken: Sequence[Snapshot], passers: Iterable[Object]) -> None:
        self._now = datetime.now(UTC)
        self._lives = _lives(taken)
        self._names: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._known = self._unseen = _NOTHING
        self._name_hashes()
        self._name_generated()
        self._name_uids()
        self._name_passers(passers)
        if makers := {life.name for life in self._lives if life.kind in _MAKERS}:
            self._unseen = re.compile(rf"\b({_longest_first(makers)})-{_RANDOM}\b")

    def value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(key): self.value(item) for key, item in value.items()}
            case list():
                return [self.value(item) for item in value]
        return value

    def text(self, text: str) -> str:
        if text in self._addresses:
            return self._addresses[text]
        text = self._unseen.sub(lambda match: match[0] if match[0] in self._names else f"{match[1]}-<random>", text)
        text = self._known.sub(lambda match: self._names[match[0]], text)
        text = _UID.sub(self._uid, text)
        text = _TOKEN_VOLUME.sub("kube-api-access-<random>", text)
        text = _MINUTE.sub("<minute>", _POOL_NODE.sub("<node>", text))
        return _TIME.sub(self._time, text)

    def _uid(self, match: re.Match[str]) -> str:
        return self._uids.get(match[0], match[0] if match[0].startswith(_CHOSEN_UID) else "<uid>")

    def _time(self, match: re.Match[str]) -> str:
        return "<time>" if abs(datetime.fromisoformat(match[0]) - self._now) < _RECENT else match[0]

    def look_at_addresses(self, snapshot: Snapshot) -> None:
        """Names the addresses of a snapshot: they are used again."""
        self._addresses = {}
        for kind, content in snapshot.objects:
            name = self.text(content["metadata"]["name"])
            if kind == "Pod" and (address := content.get("status", {}).get("podIP")):
                self._addresses[address] = f"<address of {name}>"
            if kind == "Service" and (address := content["spec"].get("clusterIP", "None")) != "None":
                self._addresses[address] = f"<address of service {name}>"

    def _name_hashes(self) -> None:
        """Hashes of templates, in the order in which what they name came about."""
        for life in self._in_order(lambda life: life.kind in ("ReplicaSet", "ControllerRevision")):
            suffix = life.name.rpartition("-")[2]
            if suffix in life.metadata.get("labels", {}).values():
                self._know(suffix, f"<hash {len(self._names) + 1}>")

    def _name_generated(self) -> None:
        """The random endings of names that the server completed."""
        counts: dict[str, int] = {}
        for life in self._in_order(lambda life: _is_generated(life.metadata)):
            prefix = self.text(life.metadata["generateName"])
            counts[prefix] = counts.get(prefix, 0) + 1
            self._know(life.name, f"{prefix}<{life.kind.lower()} {counts[prefix]}>")

    def _name_uids(self) -> None:
        seen: dict[str, int] = {}
        for life in sorted(self._lives, key=lambda life: min(life.looks)):
            name = f"{life.kind} {self.text(life.name)}"
            seen[name] = seen.get(name, 0) + 1
            self._uids[life.uid] = f"<uid of {name}{f', number {seen[name]}' if seen[name] > 1 else ''}>"

    def _name_passers(self, passers: Iterable[Object]) -> None:
        """All that came and went unseen look alike."""
        seen = {life.name for life in self._lives}
        for metadata in (one["metadata"] for one in passers):
            name = metadata["name"]
            suffix = name.rpartition("-")[2]
            if name in seen:
                continue
            if _is_generated(metadata):
                self._know(name, f"{metadata['generateName'].partition('-')[0]}-<gone>")
            elif suffix in metadata.get("labels", {}).values() and suffix not in self._names:
                self._know(suffix, "<gone>")

    def _know(self, found: str, symbol: str) -> None:
        self._names[found] = symbol
        self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{_longest_first(self._names)})(?![A-Za-z0-9])")

    def _in_order(self, chosen: Callable[[_Life], bool]) -> list[_Life]:
        """Objects by when they were first seen, and then by what they looked like as long as they lived."""
        unknown = {life.name for life in self._lives if _is_generated(life.metadata)}
        for life in self._lives:
            labels = life.metadata.get("labels", {})
            unknown |= {labels[label] for label in _HASH_LABELS if labels.get(label)}
        unknown -= self._names.keys()
        mask = re.compile(_longest_first(unknown)) if unknown else _NOTHING

        def place(life: _Life) -> tuple[int, str]:
            looks = {str(number): shown(compared(life.kind, one)) for number, one in life.looks.items()}
            text = mask.sub("?", json.dumps(looks, sort_keys=True))
            text = self._known.sub(lambda match: self._names[match[0]], text)
            for pattern in (_TIME, _UID, _TOKEN_VOLUME, _POOL_NODE, _ADDRESS, _MINUTE):
                text = pattern.sub("?", text)
            return min(life.looks), text

        return sorted(filter(chosen, self._lives), key=place)


def _lives(taken: Sequence[Snapshot]) -> list[_Life]:
    """Every object that was seen."""
    lives: dict[str, _Life] = {}
    for number, snapshot in enumerate(taken):
        for kind, one in snapshot.objects:
            if kind != "Event":
                uid = one["metadata"]["uid"]
                lives.setdefault(uid, _Life(uid, kind)).looks[number] = one
    return list(lives.values())


def _is_generated(metadata: Object) -> bool:
    """Whether the server made up the end of a name; pods of a StatefulSet only say so."""
    prefix = metadata.get("generateName", "")
    return bool(prefix and re.fullmatch(re.escape(prefix) + _RANDOM, metadata["name"]))


def _longest_first(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
