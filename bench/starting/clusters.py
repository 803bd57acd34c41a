"""The two clusters as processes: started on a data dir, with the moments at which they were ready, and ended."""

from __future__ import annotations

import http.client
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from bench.figures.processes import cpu_seconds, proportional_memory
from bench.starting import kwok
from shoal.cli.data_dir import DataDir
from shoal.cluster.kubernetes import Binaries, MissingBinaries, Part, RealKubernetes, find_binaries
from shoal.cluster.kubernetes.ports import ReservedPort
from shoal.cluster.kubernetes.processes import Child, Spawner, end_all

SHOAL = str(Path(sys.executable).with_name("shoal"))
_HOST = "127.0.0.1"
_START_WITHIN = 120.0
_FAST = ("--kube-api-qps=100000", "--kube-api-burst=100000")
"""Kubernetes' own limits would be all that is measured."""


T = TypeVar("T")


class StartFailed(Exception):
    """A cluster did not get ready."""


class Ended(Exception):
    """A process of a cluster has ended while it was measured."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster that runs."""

    kubeconfig: Path
    processes: Mapping[str, int]
    """The number of each process by its name."""
    api_ready: float
    """Seconds from the start until /readyz was answered with success over TLS."""
    all_ready: float
    makes_nodes: bool
    """Whether it was started with its nodes."""

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each process so far."""
        return self._of_each(cpu_seconds)

    def memory(self) -> dict[str, int]:
        """Proportional memory of each process."""
        return self._of_each(proportional_memory)

    def _of_each(self, read: Callable[[int], T]) -> dict[str, T]:
        figures = {}
        for name, pid in self.processes.items():
            try:
                figures[name] = read(pid)
            except (FileNotFoundError, ProcessLookupError) as gone:
                raise Ended(f"{name} has ended meanwhile: see its log") from gone
        return figures


class Start(Protocol):
    """Starts a cluster; the block ends it."""

    def __call__(self, data_dir: Path, *, nodes: int) -> AbstractContextManager[Cluster]: ...


def embedded(profiles: Path | None = None) -> Start:
    """``shoal up`` as it stands, or under a profiler that leaves what it found in a folder."""
    return lambda data_dir, *, nodes: _embedded(data_dir, nodes=nodes, profiles=profiles)


@contextmanager
def _embedded(data_dir: Path, *, nodes: int, profiles: Path | None) -> Iterator[Cluster]:
    command, environment = [SHOAL], {}
    if profiles is not None:
        command = [sys.executable, "-m", "bench.starting.profiled"]
        environment = {"SHOAL_BENCH_PROFILES": str(profiles.absolute())}
    # On this machine pods would really run, and those for simulated nodes have nothing to run.
    options = [f"--sim={nodes}x8:H100", "--no-local-node"] if nodes else []
    with shoal_up(command, data_dir, *options, environment=environment) as cluster:
        yield cluster


@contextmanager
def shoal_up(
    command: Sequence[str], data_dir: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """``shoal up`` with options, by a command line that stands for ``shoal``; the block ends it."""
    # An installed package has its bytecode; a developer's environment may keep Python from writing it.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    port = _free_port()
    others = [f"--{name}-port=0" for name in ("http", "plugin", "metrics", "health")]
    line = [*command, "up", f"--data-dir={data_dir}", f"--api-port={port}", *others, *options]
    log = data_dir.with_suffix(".log")
    with log.open("wb") as errors, _ReadyMoment(port) as moment:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, env=inherited | dict(environment or {}))
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            all_ready = moment.seconds_until_now()
            if not said.startswith(b"Shoal is ready"):
                raise StartFailed(f"shoal up did not get ready:\n{log.read_text()[-2000:]}")
            parts = {part.name: part.pid for part in DataDir(data_dir).parts()}
            yield Cluster(
                kubeconfig=data_dir / "kubeconfig",
                processes={"supervisor": process.pid, **parts},
                api_ready=moment.seconds(),
                all_ready=all_ready,
                makes_nodes=True,
            )
        finally:
            _end(process)


@dataclass(frozen=True, kw_only=True)
class RealParts:
    """The executables of the peer."""

    kubernetes: Binaries
    kwok: Path


def real_parts() -> RealParts:
    """All of them; raises MissingBinaries."""
    found = find_binaries()
    missing = [
        name
        for name, path in (
            ("kube-controller-manager", found.kube_controller_manager),
            ("kube-scheduler", found.kube_scheduler),
        )
        if path is None
    ]
    simulator = kwok.binary()
    if missing or simulator is None:
        raise MissingBinaries([*missing, *(["kwok"] if simulator is None else [])], [found.kube_apiserver.parent])
    return RealParts(kubernetes=found, kwok=simulator)


def real(parts: RealParts) -> Start:
    """etcd with its fsync, kube-apiserver, kube-controller-manager, kube-scheduler and kwok."""
    return lambda data_dir, *, nodes: _real(parts, data_dir)


@contextmanager
def _real(parts: RealParts, data_dir: Path) -> Iterator[Cluster]:
    port, scheduler_port, kwok_port = _free_port(), _free_port(), _free_port()
    flags = {
        Part.API_SERVER: ["--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"],
        # No node renews a lease: at ten thousand nodes little else would happen.
        Part.CONTROLLER_MANAGER: [*_FAST, "--node-monitor-grace-period=24h"],
        Part.SCHEDULER: [
            *_FAST,
            f"--secure-port={scheduler_port}",
            f"--bind-address={_HOST}",
            f"--cert-dir={data_dir.absolute() / 'scheduler'}",
        ],
    }
    cluster = RealKubernetes(
        parts.kubernetes,
        data_dir,
        port=port,
        controller_manager=True,
        scheduler=True,
        durable=True,
        extra_flags=flags,
        ready_within=_START_WITHIN,
    )
    spawner = Spawner()
    simulator: list[Child] = []
    with _ReadyMoment(port) as moment:
        try:
            cluster.start()
            config = data_dir / "kwok.yaml"
            config.write_text(kwok.configuration())
            command = [
                str(parts.kwok),
                f"--kubeconfig={cluster.kubeconfig}",
                f"--config={config}",
                "--manage-all-nodes",
                f"--node-ip={_HOST}",
                "--cidr=10.0.0.0/8",
                f"--server-address={_HOST}:{kwok_port}",
            ]
            log = data_dir / "logs" / "kwok.log"
            environment = {**os.environ, "HOME": str(data_dir)}
            simulator.append(spawner.spawn("kwok", command, folder=data_dir, log=log, environment=environment))
            _wait_until_ready("kwok", simulator[0], http.client.HTTPConnection(_HOST, kwok_port, timeout=5), "/healthz")
            scheduler = http.client.HTTPSConnection(_HOST, scheduler_port, timeout=5, context=_trusting())
            _wait_until_ready("kube-scheduler", cluster.processes()[Part.SCHEDULER], scheduler, "/readyz")
            yield Cluster(
                kubeconfig=cluster.kubeconfig,
                processes={part.value: child.pid for part, child in cluster.processes().items()}
                | {"kwok": simulator[0].pid},
                api_ready=moment.seconds(),
                all_ready=moment.seconds_until_now(),
                makes_nodes=False,
            )
        finally:
            end_all(simulator, grace=2)
            spawner.close()
            cluster.stop()


def _wait_until_ready(name: str, child: Child, connection: http.client.HTTPConnection, path: str) -> None:
    deadline = time.monotonic() + _START_WITHIN
    while not _answers(connection, path):
        if not child.is_running or time.monotonic() > deadline:
            raise StartFailed(f"{name} {child.ending()} and was not ready:\n{child.log_tail()}")
        time.sleep(0.02)


class _ReadyMoment:
    """Asks a server over TLS, from before it is started, until it says that it is ready."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._began = time.perf_counter()
        self._after: float | None = None
        self._gives_up = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> _ReadyMoment:
        self._began = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._gives_up.set()

    def seconds_until_now(self) -> float:
        return time.perf_counter() - self._began

    def seconds(self) -> float:
        """When it was ready; waits for that."""
        self._thread.join(_START_WITHIN)
        if self._after is None:
            raise StartFailed(f"/readyz was not answered within {_START_WITHIN:.0f} s")
        return self._after

    def _ask(self) -> None:
        connection = http.client.HTTPSConnection(_HOST, self._port, timeout=10, context=_trusting())
        while not self._gives_up.is_set():
            if _answers(connection, "/readyz"):
                self._after = self.seconds_until_now()
                connection.close()
                return
            time.sleep(0.01)


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return False
    return answer.status == 200


def _trusting() -> ssl.SSLContext:
    """No authority exists before the first start; nothing but the moment of the answer is wanted."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _free_port() -> int:
    with ReservedPort(_HOST) as port:
        return port.number


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    with suppress(OSError):
        process.stdout.close()
