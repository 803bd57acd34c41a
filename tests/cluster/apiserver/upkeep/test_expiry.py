from __future__ import annotations

import asyncio
from typing import Any

from shoal.cluster.apiserver.core import Core
from shoal.cluster.apiserver.upkeep.expiry import EventExpiry
from tests.cluster.apiserver.conftest import Ask

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about, "reason": "Told"}


async def names(ask: Ask) -> list[str]:
    return [item["metadata"]["name"] for item in (await ask("GET", EVENTS))[1]["items"]]


async def test_events_go_an_hour_after_their_last_write(ask: Ask, core: Core) -> None:
    seconds = 0.0
    expiry = EventExpiry(core.state, lambda: seconds)
    for name in ("first", "counted"):
        assert (await ask("POST", EVENTS, event(name)))[0] == 201
    await expiry.sweep()
    seconds = 1800.0
    await expiry.sweep()
    assert (await ask("POST", EVENTS, event("later")))[0] == 201
    merge = "application/merge-patch+json"
    assert (await ask("PATCH", f"{EVENTS}/counted", {"count": 2}, kind=merge))[0] == 200
    seconds = 3599.0
    await expiry.sweep()
    assert await names(ask) == ["counted", "first", "later"]
    watcher = core.state.store.watch("events", None, since=core.state.store.revision)
    seconds = 3600.0
    await expiry.sweep()
    assert await names(ask) == ["counted", "later"]
    ((type_, change),) = await watcher.changes()
    assert (type_.value, change.record.name) == ("DELETED", "first")
    assert f'"resourceVersion":"{change.record.revision}"'.encode() in change.record.data
    watcher.close()
    seconds = 7300.0
    await expiry.sweep()
    assert await names(ask) == []


async def test_nothing_but_events_goes(ask: Ask, core: Core) -> None:
    seconds = 0.0
    expiry = EventExpiry(core.state, lambda: seconds)
    before = core.state.store.revision
    await expiry.sweep()
    seconds = 100_000.0
    await expiry.sweep()
    await asyncio.sleep(0)
    assert core.state.store.revision == before
    assert (await ask("GET", "/api/v1/namespaces/default"))[0] == 200
