"""Makes two tellings of one story comparable: what is made up in each gets a symbol, everything else stays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.differential.compared import compared, shown
from tests.differential.mirror import Object
from tests.differential.story import Snapshot
from tests.differential.symbols import Symbols

AS_BEFORE = "as before"
_EVERYWHERE = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
# Somebody else was faster; it is tried again.
_IN_VAIN = "the object has been modified; please apply your changes to the latest version and try again"
_COMBINED = "(combined from similar events): "
# Told by schedulers and nodes, which are no controllers, or only where a scheduler is slower than a controller.
_NOT_OURS = {
    "Scheduled",
    "FailedScheduling",
    "Preempted",
    "NodeReady",
    "RegisteredNode",
    "NodeHasSufficientMemory",
    "Starting",
    "WaitForPodScheduled",
}


Telling = dict[str, Any]
"""What a story came to: for each snapshot its objects, events and answers."""


def normalised(taken: Sequence[Snapshot], passers: Iterable[Object] = (), *, with_accounts: bool = False) -> Telling:
    """The snapshots of one telling, as they are recorded and compared.

    ``passers`` are all objects that ever were; of those that are in no snapshot, events may still tell.
    """
    symbols = Symbols(taken, passers)
    told: Telling = {}
    before: dict[str, Any] = {}
    for number, snapshot in enumerate(taken, start=1):
        symbols.look_at_addresses(snapshot)
        objects = {
            f"{kind} {symbols.text(one['metadata']['name'])}": shown(symbols.value(compared(kind, one)))
            for kind, one in snapshot.objects
            if kind != "Event" and (with_accounts or (kind, one["metadata"]["name"]) not in _EVERYWHERE)
        }
        told[f"{number}. {snapshot.name}"] = {
            "objects": _shortened(objects, before),
            "events": _events(snapshot, symbols),
            **({"answers": symbols.value(snapshot.answers)} if snapshot.answers else {}),
        }
        before = objects
    return told


def _shortened(objects: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The objects of a snapshot, where one that did not change, or looks like another one, is told in a word."""
    shortened: dict[str, Any] = {}
    looks: dict[str, str] = {}
    for key, one in sorted(objects.items()):
        kind, _, name = key.partition(" ")
        look = kind + json.dumps(one, sort_keys=True).replace(json.dumps(name)[1:-1], "<its name>")
        if before.get(key) == one:
            shortened[key] = AS_BEFORE
        else:
            shortened[key] = f"like {looks[look]}" if look in looks else one
            looks.setdefault(look, key)
    return shortened


def _events(snapshot: Snapshot, symbols: Symbols) -> list[str]:
    """What was told, each once: how often and when differs."""
    told = {
        symbols.text(
            f"{one['involvedObject']['kind']} {one['involvedObject']['name']}: "
            f"{one['type']} {one['reason']}: {one['message'].removeprefix(_COMBINED)}"
        )
        for kind, one in snapshot.objects
        if kind == "Event" and one["reason"] not in _NOT_OURS and _IN_VAIN not in one["message"]
    }
    return sorted(told)
