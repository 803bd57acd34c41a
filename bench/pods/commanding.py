"""Commands in a pod that runs: by exec from outside, and by an exec probe."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from bench.pods.bare import Bare
from bench.pods.outside import Pods
from bench.pods.specs import sleeping

_NAME = "commanded"
_PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 1}


@dataclass(kw_only=True)
class Commands:
    """Seconds of each command, and of each bare program that was started between two of them."""

    exec: list[float] = field(default_factory=list)
    """From the request until its exit code is known."""
    probed: list[float] = field(default_factory=list)
    """From when a pod was seen to run until its first probe made it ready."""
    bare: list[float] = field(default_factory=list)


async def commands(pods: Pods, bare: Bare | None, count: int) -> Commands:
    """Runs ``true`` so often in one pod, one after the other, and lets a tenth as many pods be probed once."""
    found = Commands()
    pod = await pods.create(_NAME, sleeping())
    await pods.until([pod], lambda one: bool(one.ready), "were ready")
    for _ in range(count):
        began = time.perf_counter()
        await pods.execute(_NAME, "true")
        found.exec.append(time.perf_counter() - began)
        if bare is not None:
            found.bare.append(await asyncio.to_thread(bare.one))
    for number in range(max(count // 10, 1)):
        probed = await pods.create(f"probed-{number}", sleeping(readiness=_PROBE))
        await pods.until([probed], lambda one: bool(one.ready), "were ready")
        found.probed.append(probed.ready - probed.running)
    await pods.delete_all()
    return found
