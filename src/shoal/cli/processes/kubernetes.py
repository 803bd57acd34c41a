"""A real Kubernetes as a process of ours: it starts etcd, kube-apiserver and the rest, and starts again what ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shoal.cli.children import Main, Reporter
from shoal.cli.data_dir import PartState
from shoal.cli.supervisor import stopping_on_signals
from shoal.cluster.kubernetes import MissingBinaries, Part, PortTaken, RealKubernetes, StartFailed
from shoal.cluster.kubernetes.processes import Child
from shoal.kube.backoff import Backoff

_LOOK_EVERY = 0.2
_DELAYS = Backoff(initial=0.5, cap=30.0)
_STABLE_AFTER = 60.0


def kubernetes_process(cluster: RealKubernetes) -> Main:
    """The process that keeps a cluster running."""

    def main(reporter: Reporter) -> None:
        with stopping_on_signals() as stop:
            try:
                _start(cluster, reporter)
                watched = [_Watched(part) for part in cluster.processes()]
                reporter.parts(_states(watched, cluster.processes()))
                reporter.ready()
                while True:
                    if _restart_ended(watched, cluster, now=time.monotonic()):
                        reporter.parts(_states(watched, cluster.processes()))
                    time.sleep(_LOOK_EVERY)
                    stop.check()
            finally:
                cluster.stop(grace=1.2)

    return main


def _start(cluster: RealKubernetes, reporter: Reporter) -> None:
    try:
        cluster.start()
    except StartFailed as error:
        said = f"{error.part} {error.what}: the end of its log {error.log} is above"
        reporter.failed(said, log_tail=error.tail)
        raise
    except (PortTaken, MissingBinaries) as error:
        reporter.failed(str(error))
        raise


@dataclass
class _Watched:
    """What is remembered of a part."""

    part: Part
    restarts: int = 0
    failures: int = 0
    started: float = 0.0
    start_again: float | None = None


def _restart_ended(watched: list[_Watched], cluster: RealKubernetes, *, now: float) -> bool:
    """Starts again what has ended, each part after its own delay; whether anything is new."""
    ended = set(cluster.ended())
    is_new = False
    for one in watched:
        if one.part not in ended:
            continue
        if one.start_again is None:
            one.failures = 1 if now - one.started > _STABLE_AFTER else one.failures + 1
            delay = _DELAYS.delay(one.failures)
            one.start_again = now + delay
            ending = cluster.processes()[one.part].ending()
            sys.stderr.write(f"shoal: {one.part} {ending}: it is started again in {delay:.1f} s\n")
            is_new = True
        if now >= one.start_again:
            cluster.launch_again(one.part)
            one.restarts += 1
            one.started, one.start_again = now, None
            is_new = True
    return is_new


def _states(watched: list[_Watched], processes: Mapping[Part, Child]) -> list[dict[str, Any]]:
    return [
        asdict(
            PartState(
                name=one.part.value,
                state="running" if one.start_again is None else "restarting",
                pid=processes[one.part].pid,
                restarts=one.restarts,
            )
        )
        for one in watched
    ]
