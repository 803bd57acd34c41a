"""A cluster of simulated nodes without a scheduler, and ``shoal scheduler`` beside it, as processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.starting.clusters import SHOAL, Cluster, StartFailed, shoal_up
from shoal.cluster.kubernetes.ports import ReservedPort

GPUS = 8
_HOST = "127.0.0.1"
_READY_WITHIN = 300.0


@contextmanager
def stage(data_dir: Path, *, nodes: int, profiles: Path | None = None) -> Iterator[Cluster]:
    """Both of them, ready: the scheduler has published a view of all nodes. The block ends them."""
    command, environment = [SHOAL], {}
    if profiles is not None:
        command = [sys.executable, "-m", "bench.starting.profiled"]
        environment = {"SHOAL_BENCH_PROFILES": str(profiles.absolute() / data_dir.name)}
    options = [f"--sim={nodes}x{GPUS}:H100", "--no-local-node", "--only=controllers,nodes"]
    with (
        shoal_up(command, data_dir, *options, environment=environment) as cluster,
        _scheduler(command, cluster.kubeconfig, data_dir, nodes, environment) as pid,
    ):
        yield replace(cluster, processes={**cluster.processes, "scheduler": pid})


@contextmanager
def _scheduler(
    command: list[str], kubeconfig: Path, data_dir: Path, nodes: int, environment: Mapping[str, str]
) -> Iterator[int]:
    with ReservedPort(_HOST) as pages, ReservedPort(_HOST) as metrics:
        ports = pages.number, metrics.number
    line = [
        *command,
        "scheduler",
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--plugin-server-port={ports[0]}",
        f"--listen-address={_HOST}:{ports[1]}",
    ]
    log = data_dir.with_suffix(".scheduler.log")
    with log.open("wb") as told:
        process = subprocess.Popen(line, stdout=told, stderr=told, env={**os.environ, **environment})
    try:
        deadline = time.monotonic() + _READY_WITHIN
        while _nodes_seen(ports[0]) < nodes:
            if process.poll() is not None or time.monotonic() > deadline:
                raise StartFailed(f"shoal scheduler did not get ready:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _nodes_seen(port: int) -> int:
    connection = http.client.HTTPConnection(_HOST, port, timeout=10)
    try:
        connection.request("GET", "/api/v1/visualizer/summary")
        answer = connection.getresponse()
        body = answer.read()
        return int(json.loads(body)["totalNodes"]) if answer.status == 200 else 0
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
