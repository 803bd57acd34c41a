"""Runs contestants in turn, each in a process of its own, and says what each took.

A heat: the objects are there, the contestant is ready; the clock runs from the word until the server has the last
status and the last child. What the contestant still writes after that is waited for, so that its writes and CPU time
are complete. CPU time is the kernel's account of the whole process from the word to its end.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.race.track import Track

ROOT = Path(__file__).resolve().parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Heat:
    """What one contestant took for one set of objects."""

    objects: int
    seconds: float
    cpu_seconds: float
    cpu_seconds_of_process: float
    """With imports and configuration."""
    peak_memory: int
    writes: int
    writes_by_kind: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Objects a second."""
        return self.objects / self.seconds


class Fallen(Exception):
    """A contestant did not reach the end."""


async def run_heats(
    track: Track, contestants: Sequence[str], *, objects: int, rounds: int, logs: Path
) -> AsyncIterator[tuple[str, Heat]]:
    """Round after round, every contestant once in each, a different one first each time; a small heat warms up."""
    await run_heat(track, contestants[0], namespace="warm-up", objects=max(50, objects // 5), logs=logs)
    for number in range(rounds):
        shift = number % len(contestants)
        for contestant in [*contestants[shift:], *contestants[:shift]]:
            namespace = f"{contestant.replace('_', '-')}-{number}"
            yield contestant, await run_heat(track, contestant, namespace=namespace, objects=objects, logs=logs)


async def run_heat(track: Track, contestant: str, *, namespace: str, objects: int, logs: Path) -> Heat:
    """One contestant, one namespace of objects."""
    since = await track.prepare(namespace, objects)
    before = await track.writes()
    log = logs / f"{namespace}.log"
    async with _process(contestant, [str(track.kubeconfig), namespace], log) as process:
        at_start = _cpu_seconds(process.pid)
        finished = asyncio.create_task(track.finish(namespace, since, objects))
        await asyncio.sleep(0.2)  # lets the observer's watches begin; not a part of what is measured
        started = time.perf_counter()
        await asyncio.to_thread(_say, process, b"go\n")
        await _unless_fallen(finished, process, contestant, log)
        seconds = time.perf_counter() - started
        writes = await _settled(track) - before
        usage = await asyncio.to_thread(_end, process)
    await track.check(namespace, objects)
    await track.clear(namespace)
    whole = usage.ru_utime + usage.ru_stime
    return Heat(
        objects=objects,
        seconds=seconds,
        cpu_seconds=whole - at_start,
        cpu_seconds_of_process=whole,
        peak_memory=usage.ru_maxrss * 1024,
        writes=writes.total(),
        writes_by_kind=dict(writes),
    )


async def _settled(track: Track) -> Counter[str]:
    """The writes once no more come."""
    last = await track.writes()
    while True:
        await asyncio.sleep(0.5)
        now = await track.writes()
        if now == last:
            return now
        last = now


async def _unless_fallen(
    finished: asyncio.Task[None], process: subprocess.Popen[bytes], contestant: str, log: Path, *, within: float = 300.0
) -> None:
    deadline = time.monotonic() + within
    while not finished.done():
        await asyncio.wait([finished], timeout=1.0)
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        fell = ended is not None and (ended.si_code != os.CLD_EXITED or ended.si_status != 0)
        if not finished.done() and (fell or time.monotonic() > deadline):
            finished.cancel()
            why = "ended" if fell else f"did not finish within {within:.0f} s"
            raise Fallen(f"{contestant} {why}; its log ends with:\n{log.read_text()[-2000:]}")
    await finished


@asynccontextmanager
async def _process(contestant: str, arguments: Sequence[str], log: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A contestant that has said that it is ready; killed if it still runs at the end."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", f"bench.contestants.{contestant}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if await asyncio.to_thread(process.stdout.readline) != b"ready\n":
            raise Fallen(f"{contestant} did not get ready; its log ends with:\n{log.read_text()[-2000:]}")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
        process.stdin.close()
        process.stdout.close()


def _say(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(word)
    process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Stops a contestant, by force where it does not end by itself, and gives the kernel's account of it."""
    os.kill(process.pid, signal.SIGTERM)  # Popen's own way would take the account of one that has ended already
    deadline = time.monotonic() + 15
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.01)


def _cpu_seconds(pid: int) -> float:
    """What a process has used so far, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
