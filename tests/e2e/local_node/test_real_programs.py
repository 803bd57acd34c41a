"""A real Jupyter server and Debian's PostgreSQL as pods, just as examples/local-node shows them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.e2e.local_node.conftest import LocalNode, a_local_node
from tests.support.programs import real_programs
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "local-node"
SECRET = "choose-another"
WITHIN = 90.0
"""Seconds for something to come true, on a machine that has much else to do."""


@dataclass(frozen=True)
class Walkthrough:
    """Somebody who follows the example's README on a node."""

    node: LocalNode
    images: Path

    def types(self, command: str) -> str:
        """What a command of the README prints."""
        assert f"$ {command}\n" in (EXAMPLE / "README.md").read_text(), f"the README does not say: {command}"
        kubectl = self.node.kubectl
        variables = {
            "PATH": f"{kubectl.binary.parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubectl.kubeconfig),
            "KUBECACHEDIR": str(kubectl.cache),
        }
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}{self.shown()}"
        return done.stdout

    @contextmanager
    def forwards(self, command: str) -> Iterator[int]:
        """The port of this machine that a port-forward of the README leads from, here any free one."""
        assert f"$ kubectl {command}\n" in (EXAMPLE / "README.md").read_text()
        *words, port = command.split()
        kubectl = self.node.kubectl
        line = [str(kubectl.binary), f"--kubeconfig={kubectl.kubeconfig}", *words, f":{port}", "--address=127.0.0.1"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as forwarding:
            try:
                assert forwarding.stdout is not None
                said = forwarding.stdout.readline()
                found = re.fullmatch(rf"Forwarding from 127\.0\.0\.1:(\d+) -> {port}\n", said)
                assert found, said
                yield int(found[1])
            finally:
                forwarding.kill()

    def uid_of(self, pod: str) -> str:
        return self.node.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")

    def shown(self) -> str:
        """What a person would look at next."""
        looks = (("get", "all", "-o", "wide"), ("get", "events", "--sort-by=.lastTimestamp"))
        return "\n... while there was:\n" + "\n".join(self.node.kubectl.run(*look).stdout for look in looks)


@pytest.fixture(scope="module")
def images() -> Path:
    try:
        return real_programs.install()
    except real_programs.Unavailable as unavailable:
        if os.environ.get("SHOAL_REQUIRE_KUBE", "") in ("", "0"):
            pytest.skip(str(unavailable))
        raise


@pytest.fixture(scope="module", params=["root", "user"])
def walkthrough(request: pytest.FixtureRequest, images: Path) -> Iterator[Walkthrough]:
    with a_local_node(request.param) as node:
        (node.folder / "images").symlink_to(images)
        shutil.copy(EXAMPLE / "images.yaml", node.shoal.data_dir)
        yield Walkthrough(node, images)


def test_a_notebook_computes_in_a_pod_and_its_files_outlive_it(walkthrough: Walkthrough) -> None:
    walkthrough.types("kubectl apply -f examples/local-node/jupyter.yaml")
    walkthrough.types("kubectl wait --for=condition=Ready pod/jupyter --timeout=2m")
    with walkthrough.forwards("port-forward pod/jupyter 8888") as port:
        answers = asyncio.run(
            in_a_notebook(port, "1+1", "open('kept', 'w').write('by the volume')", "__import__('os').getuid()")
        )
    assert answers == ["2", "13", "1000"]

    walkthrough.node.kubectl("delete", "pod", "jupyter")
    walkthrough.types("kubectl apply -f examples/local-node/jupyter.yaml")
    walkthrough.types("kubectl wait --for=condition=Ready pod/jupyter --timeout=2m")
    with walkthrough.forwards("port-forward pod/jupyter 8888") as port:
        assert asyncio.run(in_a_notebook(port, "open('kept').read()")) == ["'by the volume'"]


def test_postgresql_serves_this_machine_and_pods_and_keeps_its_data(walkthrough: Walkthrough) -> None:
    walkthrough.types("kubectl apply -f examples/local-node/postgresql.yaml")
    walkthrough.types("kubectl rollout status statefulset/postgresql --timeout=2m")
    first = walkthrough.uid_of("postgresql-0")
    with walkthrough.forwards("port-forward service/postgresql 5432") as port:
        assert "(Debian " in psql(walkthrough, port, "SELECT version()")
        psql(
            walkthrough,
            port,
            "CREATE TABLE fish AS SELECT number, md5(number::text) FROM generate_series(1, 100000) number",
        )
        before = psql(walkthrough, port, "TABLE fish")
        assert before.count("\n") == 100_000
        with pytest.raises(AssertionError, match="password authentication failed"):
            psql(walkthrough, port, "SELECT 1", password="guessed")

    walkthrough.types("kubectl delete pod postgresql-0")
    walkthrough.types("kubectl rollout status statefulset/postgresql --timeout=2m")
    assert walkthrough.uid_of("postgresql-0") != first
    with walkthrough.forwards("port-forward service/postgresql 5432") as port:
        assert psql(walkthrough, port, "TABLE fish") == before
    asked = "psql --host=postgresql --username=postgres --command='SELECT version()'"
    run = f"kubectl run psql --rm --stdin --restart=Never --image=postgres --env=PGPASSWORD={SECRET} -- {asked}"
    assert "(Debian " in walkthrough.types(run)


def test_postgresql_recovers_from_a_crash_in_the_same_pod(walkthrough: Walkthrough) -> None:
    kubectl = walkthrough.node.kubectl
    walkthrough.types("kubectl apply -f examples/local-node/postgresql.yaml")
    walkthrough.types("kubectl rollout status statefulset/postgresql --timeout=2m")
    ask = (
        "exec",
        "postgresql-0",
        "--container=postgresql",
        "--",
        "psql",
        "--username=postgres",
        "--no-align",
        "--tuples-only",
    )
    kubectl(*ask, "--command=CREATE TABLE ships AS SELECT generate_series(1, 1000)")
    kubectl(
        "exec",
        "postgresql-0",
        "--container=postgresql",
        "--",
        "sh",
        "-c",
        # A moment later, and from a process that nobody waits for: the container ends, and all that runs in it.
        '(sleep 1; kill -KILL $(head -1 "$PGDATA/postmaster.pid")) >/dev/null 2>&1 &',
    )

    def restarts() -> str:
        path = "jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}"
        return kubectl("get", "pod", "postgresql-0", "-o", path)

    wait_until(lambda: restarts() == "1 true", "PostgreSQL to be ready again", within=WITHIN)
    assert kubectl(*ask, "--command=SELECT count(*) FROM ships") == "1000\n"
    assert "automatic recovery in progress" in kubectl("logs", "postgresql-0", "--container=postgresql")


def psql(walkthrough: Walkthrough, port: int, command: str, *, password: str = SECRET) -> str:
    """What PostgreSQL's own client prints, which runs on this machine, outside of all pods."""
    options = ["--host=127.0.0.1", f"--port={port}", "--username=postgres", "--no-align", "--tuples-only"]
    done = subprocess.run(
        [
            "unshare",
            "--map-root-user",
            f"--root={walkthrough.images / 'postgresql'}",
            "psql",
            *options,
            f"--command={command}",
        ],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PGPASSWORD": password},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def in_a_notebook(port: int, *cells: str) -> list[str]:
    """What cells give that are run in a kernel of their own, one after another."""
    server = f"http://127.0.0.1:{port}"
    async with asyncio.timeout(WITHIN), aiohttp.ClientSession(server, raise_for_status=True) as anybody:
        with pytest.raises(aiohttp.ClientResponseError, match="403"):
            await anybody.get("/api/status")
    signed_in = {"Authorization": f"token {SECRET}"}
    async with (
        asyncio.timeout(WITHIN),
        aiohttp.ClientSession(server, headers=signed_in, raise_for_status=True) as session,
        session.post("/api/kernels", json={"name": "python3"}) as answer,
    ):
        kernel = (await answer.json())["id"]
        async with session.ws_connect(f"/api/kernels/{kernel}/channels") as channels:
            return [await given_by(channels, cell) for cell in cells]


async def given_by(channels: aiohttp.ClientWebSocketResponse, cell: str) -> str:
    """What a cell gives, in the words of Jupyter's messages."""
    header = {"msg_id": uuid4().hex, "msg_type": "execute_request", "username": "", "session": "", "version": "5.3"}
    content = {"code": cell, "silent": False}
    await channels.send_json(
        {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
    )
    given = ""
    while True:
        message: dict[str, Any] = await channels.receive_json()
        if message["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        if message["msg_type"] == "execute_result":
            given = message["content"]["data"]["text/plain"]
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return given
