"""Exec plugins are real programs here: what they are told, when they run, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvloop

from shoal.kube.client import Client
from shoal.kube.connection import Connection
from shoal.kube.credentials import CredentialsError, Signature
from shoal.kube.exec_plugin import EARLY_SECONDS, PAUSE_SECONDS, ExecCommand, ExecPlugin, read_credential
from shoal.kube.http import HttpTransport
from shoal.kube.tls import ClientCertificate, TlsError
from tests.support.network.tls import Authority
from tests.support.waiting import eventually, is_alive

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class Clock:
    """Wall time that a test moves."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now

    def stamp(self, seconds: float) -> str:
        return datetime.fromtimestamp(self.now + seconds, UTC).isoformat().replace("+00:00", "Z")


class Plugin:
    """A program that prints what a test puts into a file, and keeps a diary of how it was run."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "plugin"
        self._answer = directory / "answer"
        self._diary = directory / "diary"
        self._diary.touch()
        self.path.write_text(
            f"#!{sys.executable}\n"
            "import json, os, pathlib, sys, time\n"
            f"here = pathlib.Path({str(directory)!r})\n"
            "with open(here / 'diary', 'a') as diary:\n"
            "    names = ('KUBERNETES_EXEC_INFO', 'GREETING', 'HOME')\n"
            "    told = {name: os.environ.get(name) for name in names}\n"
            "    print(json.dumps({'args': sys.argv[1:], 'stdin': sys.stdin.read(), **told}), file=diary)\n"
            "time.sleep(float(os.environ.get('DELAY', '0')))\n"
            "print((here / 'answer').read_text())\n"
            "sys.stderr.write(os.environ.get('COMPLAINT', ''))\n"
            "sys.exit(int(os.environ.get('EXIT', '0')))\n"
        )
        self.path.chmod(0o755)

    def prints(self, api_version: str = V1, **status: Any) -> None:
        self.prints_text(json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status}))

    def prints_text(self, text: str) -> None:
        self._answer.write_text(text)

    @property
    def runs(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._diary.read_text().splitlines()]

    def command(self, **options: Any) -> ExecCommand:
        return ExecCommand(**{"api_version": V1, "command": str(self.path), "interactive": "Never"} | options)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def token(signature: Signature) -> str:
    return signature.headers["Authorization"].removeprefix("Bearer ")


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_is_told_what_the_kubeconfig_says(plugin: Plugin, version: str) -> None:
    plugin.prints(version, token="t")
    cluster = {"server": "https://host", "config": {"audience": "x"}}
    command = plugin.command(
        api_version=version,
        args=("get", "a b"),
        env=(("GREETING", "hello"),),
        cluster=cluster,
        interactive="IfAvailable",
    )
    assert token(await ExecPlugin(command).sign()) == "t"
    (run,) = plugin.runs
    assert (run["args"], run["GREETING"], run["HOME"]) == (["get", "a b"], "hello", os.environ.get("HOME"))
    assert json.loads(run["KUBERNETES_EXEC_INFO"]) == {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": cluster},
    }


async def test_a_plugin_is_told_nothing_of_the_cluster_unless_it_asked(plugin: Plugin) -> None:
    plugin.prints(token="t")
    await ExecPlugin(plugin.command()).sign()
    assert json.loads(plugin.runs[0]["KUBERNETES_EXEC_INFO"])["spec"] == {"interactive": False}


async def test_a_token_without_an_end_is_kept(plugin: Plugin) -> None:
    plugin.prints(token="t")
    credentials = ExecPlugin(plugin.command(), now=(clock := Clock()))
    first = await credentials.sign()
    clock.now += 10 * 365 * 86400
    assert await credentials.sign() is first
    assert len(plugin.runs) == 1


async def test_a_token_is_renewed_shortly_before_its_end(plugin: Plugin) -> None:
    clock = Clock()
    plugin.prints(token="first", expirationTimestamp=clock.stamp(3600))
    credentials = ExecPlugin(plugin.command(), now=clock)
    await credentials.sign()
    clock.now += 3600 - EARLY_SECONDS - 1
    assert token(await credentials.sign()) == "first"
    plugin.prints(token="second", expirationTimestamp=clock.stamp(3600))
    clock.now += 2
    assert token(await credentials.sign()) == "second"
    assert len(plugin.runs) == 2


async def test_a_short_lived_token_is_not_fetched_for_every_request(plugin: Plugin) -> None:
    clock = Clock()
    plugin.prints(token="t", expirationTimestamp=clock.stamp(30))
    credentials = ExecPlugin(plugin.command(), now=clock)
    for _ in range(26):
        await credentials.sign()
        clock.now += 1
    assert len(plugin.runs) == 1


async def test_a_renewal_that_fails_early_leaves_the_token_in_use_until_its_end(plugin: Plugin) -> None:
    clock = Clock()
    plugin.prints(token="t", expirationTimestamp=clock.stamp(3600))
    credentials = ExecPlugin(plugin.command(), now=clock)
    await credentials.sign()
    plugin.prints_text("nonsense")
    clock.now += 3600 - EARLY_SECONDS + 1
    for _ in range(5):
        assert token(await credentials.sign()) == "t"
    assert len(plugin.runs) == 2, "a failing plugin is not run for every request"
    clock.now += EARLY_SECONDS
    with pytest.raises(CredentialsError, match="no usable ExecCredential"):
        await credentials.sign()


async def test_concurrent_requests_run_the_plugin_once(plugin: Plugin) -> None:
    plugin.prints(token="t")
    credentials = ExecPlugin(plugin.command(env=(("DELAY", "0.2"),)))
    signatures = await asyncio.gather(*(credentials.sign() for _ in range(20)))
    assert {token(signature) for signature in signatures} == {"t"}
    assert len(plugin.runs) == 1


async def test_concurrent_requests_share_a_failure_too(plugin: Plugin) -> None:
    plugin.prints(token="t")
    credentials = ExecPlugin(plugin.command(env=(("DELAY", "0.2"), ("EXIT", "3"), ("COMPLAINT", "log in first"))))
    results = await asyncio.gather(*(credentials.sign() for _ in range(20)), return_exceptions=True)
    assert {str(result) for result in results} == {f"exec plugin {plugin.path} failed with exit code 3: log in first"}
    assert len(plugin.runs) == 1


async def test_while_one_request_renews_the_others_use_what_is_still_good(plugin: Plugin) -> None:
    clock = Clock()
    plugin.prints(token="old", expirationTimestamp=clock.stamp(3600))
    credentials = ExecPlugin(plugin.command(env=(("DELAY", "0.3"),)), now=clock)
    await credentials.sign()
    plugin.prints(token="new", expirationTimestamp=clock.stamp(7200))
    clock.now += 3600 - EARLY_SECONDS + 1
    renewing = asyncio.create_task(credentials.sign())
    await eventually(lambda: len(plugin.runs) == 2)
    assert token(await credentials.sign()) == "old"
    assert token(await renewing) == "new"


async def test_a_refusal_runs_the_plugin_again(plugin: Plugin) -> None:
    plugin.prints(token="revoked")
    credentials = ExecPlugin(plugin.command())
    refused = await credentials.sign()
    plugin.prints(token="fresh")
    assert all(await asyncio.gather(*(credentials.refresh(refused) for _ in range(10))))
    assert token(await credentials.sign()) == "fresh"
    assert len(plugin.runs) == 2


async def test_a_server_that_refuses_everything_does_not_make_the_plugin_spin(plugin: Plugin) -> None:
    clock = Clock()
    plugin.prints(token="t")
    credentials = ExecPlugin(plugin.command(), now=clock)
    refused = await credentials.sign()
    assert not any([await credentials.refresh(refused) for _ in range(10)])
    assert len(plugin.runs) == 2
    clock.now += PAUSE_SECONDS
    plugin.prints(token="at last")
    assert await credentials.refresh(refused)
    assert len(plugin.runs) == 3


async def test_a_caller_that_gives_up_does_not_take_the_others_down(plugin: Plugin) -> None:
    plugin.prints(token="t")
    credentials = ExecPlugin(plugin.command(env=(("DELAY", "0.3"),)))
    first = asyncio.create_task(credentials.sign())
    await eventually(lambda: len(plugin.runs) == 1)
    second = asyncio.create_task(credentials.sign())
    first.cancel()
    assert token(await second) == "t"


async def test_a_certificate_is_taken_and_renewed_before_it_ends(plugin: Plugin) -> None:
    clock = Clock()
    authority = Authority()
    first = authority.issue("one", lifetime=timedelta(hours=1))
    plugin.prints(clientCertificateData=first.chain.decode(), clientKeyData=first.key.decode())
    credentials = ExecPlugin(plugin.command(), now=clock)
    assert (await credentials.sign()).certificate == ClientCertificate(first.chain, first.key)
    second = authority.issue("two", lifetime=timedelta(hours=2))
    plugin.prints(clientCertificateData=second.chain.decode(), clientKeyData=second.key.decode(), token="t")
    clock.now += 3600 - EARLY_SECONDS / 2
    signature = await credentials.sign()
    assert signature.certificate == ClientCertificate(second.chain, second.key)
    assert token(signature) == "t"


@pytest.mark.parametrize(
    ("arrange", "says"),
    [
        pytest.param(lambda p: p.prints_text("hello"), "JSON is malformed", id="no-json"),
        pytest.param(lambda p: p.prints_text(""), "truncated", id="nothing"),
        pytest.param(
            lambda p: p.prints(V1BETA1, token="s3cret"), f"it is {V1BETA1} ExecCredential, where", id="version"
        ),
        pytest.param(lambda p: p.prints_text('{"status":{"token":"s3cret"}}'), "it is no version", id="no-version"),
        pytest.param(lambda p: p.prints(), "neither status.token nor a client certificate", id="empty-status"),
        pytest.param(lambda p: p.prints(clientKeyData="s3cret"), "holds only one", id="key-alone"),
        pytest.param(
            lambda p: p.prints(clientCertificateData="x", clientKeyData="s3cret"), "cannot be used", id="no-certificate"
        ),
        pytest.param(lambda p: p.prints(token="s3cret\nX: y"), "no header can carry", id="line-break"),
        pytest.param(lambda p: p.prints(token=["s3cret"]), "Expected `str`, got `array`", id="wrong-type"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_explained_without_quoting_it(
    plugin: Plugin, arrange: Callable[[Plugin], None], says: str
) -> None:
    arrange(plugin)
    with pytest.raises(CredentialsError, match=says) as caught:
        await ExecPlugin(plugin.command()).sign()
    assert str(plugin.path) in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.lasting
    assert not caught.value.sent


async def test_a_missing_plugin_is_explained_with_its_hint() -> None:
    command = ExecCommand(api_version=V1, command="no-such-plugin", install_hint="brew install no-such-plugin")
    with pytest.raises(CredentialsError, match=r"no-such-plugin cannot be run: No such file.*; brew install"):
        await ExecPlugin(command).sign()


async def test_a_plugin_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    script = tmp_path / "hangs"
    script.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {tmp_path}/child\nwait\n")
    script.chmod(0o755)
    command = ExecCommand(api_version=V1, command=str(script), interactive="Never")
    with pytest.raises(CredentialsError, match=r"did not end within 0\.5 s"):
        await ExecPlugin(command, timeout=0.5).sign()
    child = int((tmp_path / "child").read_text())
    await eventually(lambda: not is_alive(child))


async def test_a_plugin_that_must_ask_is_not_run_where_nobody_can_answer(plugin: Plugin) -> None:
    plugin.prints(token="t")
    with pytest.raises(CredentialsError, match="interactiveMode: Always"):
        await ExecPlugin(plugin.command(interactive="Always")).sign()
    assert plugin.runs == []


ASKED = """
import asyncio, sys
from shoal.kube.exec_plugin import ExecCommand, ExecPlugin
command = ExecCommand(api_version=sys.argv[1], command=sys.argv[2], interactive=sys.argv[3])
print(asyncio.run(ExecPlugin(command).sign()).headers["Authorization"])
"""


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        pytest.param("Always", True, id="always"),
        pytest.param("IfAvailable", True, id="if-available"),
        pytest.param("Never", False, id="never"),
    ],
)
def test_a_plugin_may_ask_where_there_is_a_terminal(tmp_path: Path, mode: str, told: bool) -> None:
    script = tmp_path / "asks"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive']\n"
        "print('password: ', file=sys.stderr)\n"
        "token = f'{told}-{sys.stdin.readline().strip()}'\n"
        f"print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential', 'status': {{'token': token}}}}))\n"
    )
    script.chmod(0o755)
    typed, terminal = pty.openpty()
    try:
        os.write(typed, b"hunter2\n")
        done = subprocess.run(
            [sys.executable, "-c", ASKED, V1, str(script), mode],
            check=False,
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        os.close(typed)
        os.close(terminal)
    assert done.stdout == f"Bearer {told}-{'hunter2' if told else ''}\n", done.stderr
    assert ("password: " in done.stderr) is told


async def test_a_client_does_not_try_again_what_a_plugin_will_not_give(plugin: Plugin) -> None:
    credentials = ExecPlugin(plugin.command(env=(("EXIT", "1"),)))
    client = Client(HttpTransport(Connection(server="http://127.0.0.1:1", credentials=credentials)))
    with pytest.raises(CredentialsError):
        await client.read_path("/version")
    await client.close()
    assert len(plugin.runs) == 1


def test_plugins_run_on_uvloop_as_well(plugin: Plugin) -> None:
    plugin.prints(token="t")

    async def both_ways() -> None:
        assert token(await ExecPlugin(plugin.command()).sign()) == "t"
        with pytest.raises(CredentialsError, match="did not end"):
            await ExecPlugin(plugin.command(env=(("DELAY", "60"),)), timeout=0.5).sign()

    uvloop.run(both_ways())


def test_an_unusable_certificate_is_told_apart() -> None:
    body = {"clientCertificateData": "x", "clientKeyData": "y"}
    text = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": body}).encode()
    with pytest.raises(TlsError):
        read_credential(text, api_version=V1)
