"""Pods that start and go: one after the other, and many at once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from bench.pods.bare import Bare
from bench.pods.outside import Pods, Seen
from bench.pods.specs import sleeping
from bench.starting.clusters import Cluster


@dataclass(kw_only=True)
class Singly:
    """Seconds of each pod, and of each bare program that was started between two of them."""

    running: list[float] = field(default_factory=list)
    """From when it was seen to be bound."""
    ready: list[float] = field(default_factory=list)
    created_to_running: list[float] = field(default_factory=list)
    """From when it was asked for."""
    gone: list[float] = field(default_factory=list)
    """From when it was asked to go; it heeds SIGTERM at once."""
    bare: list[float] = field(default_factory=list)
    bound_at: dict[str, float] = field(default_factory=dict)
    """By its uid."""
    running_at: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class Together:
    """Seconds until all of so many pods ran, and until all of them were gone again."""

    pods: int
    running: float
    gone: float
    each: list[float]
    """From when each was seen to be bound until it was seen to run."""
    cpu: dict[str, float]
    """Of each process until all ran; what starts a container, and its init, are not among them."""
    bare: float | None = None


async def one_by_one(pods: Pods, bare: Bare | None, count: int, *, warm_up: int = 3) -> Singly:
    """Starts and deletes pods, each alone on the machine; the first few do not count."""
    found = Singly()
    for number in range(-warm_up, count):
        name = f"single-{number + warm_up:04}"
        seen = await pods.create(name, sleeping())
        await pods.until([seen], lambda one: bool(one.ready), "were ready")
        await asyncio.sleep(0.05)  # what follows a start, such as events, is not to meet what follows
        await pods.delete(name)
        await pods.until([seen], lambda one: bool(one.gone), "were gone")
        taken = await asyncio.to_thread(bare.one) if bare is not None else 0.0
        await asyncio.sleep(0.05)
        if number >= 0:
            _note(found, seen)
            found.bare += [taken] if bare is not None else []
    return found


def _note(found: Singly, seen: Seen) -> None:
    found.running.append(seen.running - seen.bound)
    found.ready.append(seen.ready - seen.bound)
    found.created_to_running.append(seen.running - seen.asked)
    found.gone.append(seen.gone - seen.dismissed)
    uid = seen.pod.metadata.uid
    found.bound_at[uid], found.running_at[uid] = seen.bound, seen.running


async def all_at_once(cluster: Cluster, pods: Pods, bare: Bare | None, count: int) -> Together:
    """Asks for pods as fast as it can, waits until all of them run, and deletes them with one request."""
    before, began = cluster.cpu(), time.perf_counter()
    seen = await pods.create_all([f"burst-{count}-{number:04}" for number in range(count)], sleeping())
    await pods.until(seen, lambda one: bool(one.running), "ran")
    running = max(one.running for one in seen) - began
    cpu = {name: used - before[name] for name, used in cluster.cpu().items()}
    await pods.delete_all()
    return Together(
        pods=count,
        running=running,
        gone=max(one.gone for one in seen) - seen[0].dismissed,
        each=[one.running - one.bound for one in seen],
        cpu=cpu,
        bare=await asyncio.to_thread(bare.many, count) if bare is not None else None,
    )
