"""Shoal's commands for other clusters as processes, signed in as the account of a file of deploy/."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.gangs.terminal import Terminal
from tests.support.clusters.shoal_up import SHOAL, Shoal
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "deploy" / "operator.yaml"
NAMESPACE = "shoal-system"
ACCOUNT, WEBHOOKS_ACCOUNT = "grove-operator", "shoal-webhooks"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
COMPONENTS = "api,controllers,scheduler,nodes"
NO_PORTS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")


@dataclass
class Running:
    """One of the processes, and what it logged."""

    process: subprocess.Popen[bytes]
    log: Path

    def told(self) -> list[dict[str, Any]]:
        """Its log so far; a last line that is being written is left out."""
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def says(self, event: str, **fields: str) -> bool:
        return any(line["event"] == event and fields.items() <= line.items() for line in self.told())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Platform:
    """A cluster without gangs of its own, on which deploy/operator.yaml was applied, or another file."""

    shoal: Shoal
    terminal: Terminal
    folder: Path
    namespace: str = NAMESPACE
    account: str = ACCOUNT
    webhooks_account: str = WEBHOOKS_ACCOUNT
    started: list[Running] = field(default_factory=list)

    def signed_in_as(self, account: str) -> Path:
        """A kubeconfig of an account of the file, with nothing but its rights."""
        path = self.folder / f"{account}.kubeconfig"
        if not path.exists():
            admin = yaml.safe_load(self.shoal.kubeconfig.read_text())
            token = self.terminal.type(f"kubectl create token {account} -n {self.namespace}").strip()
            admin["users"] = [{"name": "account", "user": {"token": token}}]
            admin["contexts"][0]["context"] |= {"user": "account", "namespace": self.namespace}
            path.write_text(yaml.safe_dump(admin))
            path.chmod(0o600)
        return path

    @contextmanager
    def running(self, *arguments: str, env: dict[str, str] | None = None) -> Iterator[Running]:
        """A command, for the length of a block; it must end when it is asked to, unless it was killed."""
        log = self.folder / f"{arguments[0]}-{len(self.started)}.log"
        account = self.webhooks_account if arguments[0] == "webhooks" else self.account
        command = [SHOAL, *arguments, f"--kubeconfig={self.signed_in_as(account)}"]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=env)
        running = Running(process, log)
        self.started.append(running)
        try:
            yield running
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(15) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def operator(self, *arguments: str, env: dict[str, str] | None = None) -> Iterator[Running]:
        with self.running("operator", "--enable=gangs", *NO_PORTS, *arguments, env=env) as running:
            yield running

    @contextmanager
    def webhooks(self, *arguments: str) -> Iterator[Running]:
        """Once the API server knows them."""
        port = free_port()
        where = (f"--url=https://127.0.0.1:{port}", f"--port={port}", "--health-probe-bind-address=0", "--only=gangs")
        with self.running("webhooks", *where, *arguments) as running:
            wait_until(lambda: running.says("all webhooks are registered"), "the webhooks to be registered")
            yield running


@contextmanager
def a_platform(
    folder: Path,
    engine: Sequence[str],
    *,
    manifests: Path = MANIFESTS,
    namespace: str = NAMESPACE,
    account: str = ACCOUNT,
    webhooks_account: str = WEBHOOKS_ACCOUNT,
    components: str = COMPONENTS,
) -> Iterator[Platform]:
    """A running cluster with nodes and all but gangs, or with other components."""
    shoal = Shoal(folder / "data", f"--only={components}", "--sim=2x8:H100", *engine)
    with ExitStack() as stack:
        _, line = stack.enter_context(shoal.foreground())
        assert line.startswith("Shoal is ready")
        terminal = Terminal(shoal.kubeconfig, folder / "kubectl")
        terminal.type(f"kubectl apply -f {manifests}")
        # What runs are the processes of the test.
        terminal.type(f"kubectl delete deployments --all -n {namespace}")
        yield Platform(shoal, terminal, folder, namespace, account, webhooks_account)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number
