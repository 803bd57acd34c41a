"""``shoal apiserver`` as a person runs it: how it starts, what it leaves in its folder, and how it ends."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from shoal.kube import Connection, HttpTransport, load_connection
from shoal.kube.transport import Request
from tests.support.programs.command import SHOAL, environment, run_to_end, shoal

READY = "Shoal is ready: api https://127.0.0.1:"


@contextmanager
def served(
    data_dir: Path, *options: str, before: str = "", port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its first line; ``before`` is shell that runs in its process first."""
    command = [*SHOAL, "apiserver", f"--data-dir={data_dir}", f"--api-port={port}", *options]
    script = ["/bin/sh", "-c", f'{before}\nexec "$@"', "sh", *command]
    with subprocess.Popen(
        script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("Shoal is ready"), process.stderr.read()
            yield process, line
        finally:
            process.kill()


def refused(*options: str) -> tuple[int, str]:
    """How a server that cannot start ends: its exit code and the one sentence that it says."""
    done = run_to_end([*SHOAL, "apiserver", *options])
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.returncode, done.stderr


def ask(
    data_dir: Path, method: str, path: str, body: dict[str, Any] | None = None, *, token: str | None = None
) -> tuple[int, Any]:
    """A request by the kubeconfig in the folder; another token, or an empty one for nobody's, is sent as it is."""
    config = yaml.safe_load((data_dir / "kubeconfig").read_text())
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    token = config["users"][0]["user"]["token"] if token is None else token
    connection = http.client.HTTPSConnection(urlsplit(cluster["server"]).netloc, context=context, timeout=20)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    try:
        return response.status, json.loads(content)
    except ValueError:
        return response.status, content.decode()


def files_below(folder: Path) -> dict[str, int]:
    """The mode of every file and folder, by its path."""
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}


@dataclass(frozen=True)
class Running:
    """A server that the tests of this file share."""

    data_dir: Path
    process: int
    line: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data_dir = tmp_path_factory.mktemp("apiserver") / "data"
    with served(data_dir, before="umask 022") as (process, line):
        yield Running(data_dir, process.pid, line)


@pytest.fixture(scope="module")
def running(server: Running) -> Path:
    """Its data dir."""
    return server.data_dir


def test_it_says_where_it_is_and_everything_it_writes_is_its_owners_alone(server: Running) -> None:
    data_dir = server.data_dir
    url = yaml.safe_load((data_dir / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    assert server.line == f"Shoal is ready: api {url}, kubeconfig {data_dir / 'kubeconfig'}\n"
    modes = files_below(data_dir)
    assert (modes["kubeconfig"], modes["api.sock"]) == (0o600, 0o600)
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    secrets = [path for path in modes if path.endswith((".key", ".db", "-wal", "token"))]
    assert secrets
    assert {path: modes[path] for path in secrets if modes[path] & 0o077} == {}


def test_a_data_dir_belongs_to_one(server: Running) -> None:
    code, said = refused(f"--data-dir={server.data_dir}", "--api-port=0")
    assert code == 1
    assert said.startswith(f"shoal: {server.data_dir} is in use by process {server.process}: stop it with")
    assert ask(server.data_dir, "GET", "/readyz") == (200, "ok")


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = refused(f"--data-dir={tmp_path / 'data'}", f"--api-port={port}")
    assert code == 1
    assert said == (
        f"shoal: 127.0.0.1:{port} cannot be listened on: Address already in use: "
        "choose another port, or 0 for any free one\n"
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param(["--bind=localhost"], 2, "localhost is no IP address, try 127.0.0.1", id="a-name-to-bind-to"),
        pytest.param(["--bind=203.0.113.9"], 1, "203.0.113.9:0 cannot be listened on", id="an-address-of-another"),
        pytest.param(["--api-port=65536"], 2, "--api-port", id="no-port"),
        pytest.param(["--api-port=x"], 2, "--api-port", id="no-number"),
        pytest.param(["--data-dir=/proc/nowhere"], 5, "/proc/nowhere", id="no-place-for-a-folder"),
    ],
)
def test_what_cannot_work_is_said_at_once(tmp_path: Path, options: list[str], code: int, said: str) -> None:
    ended, told = refused(f"--data-dir={tmp_path}", "--api-port=0", *options)
    assert ended == code
    assert said in told


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no database at all" * 100, id="not-a-database"),
        pytest.param(b"", id="empty"),
        pytest.param(b"SQLite format 3\0" + bytes(84), id="of-something-else"),
    ],
)
def test_a_store_that_cannot_be_read_is_left_as_it_is(tmp_path: Path, running: Path, content: bytes) -> None:
    data_dir = shutil.copytree(running, tmp_path / "data", ignore=shutil.ignore_patterns("*.sock", "objects.db*"))
    database = data_dir / "store" / "objects.db"
    database.write_bytes(content)
    code, said = refused(f"--data-dir={data_dir}", "--api-port=0")
    assert code == 1
    assert said.startswith(f"shoal: {database} cannot be read: ")
    assert database.read_bytes() == content


_IGNORED = "trap '' INT TERM"


@pytest.mark.parametrize(
    ("number", "before"),
    [
        pytest.param(signal.SIGTERM, "", id="SIGTERM"),
        pytest.param(signal.SIGINT, _IGNORED, id="SIGINT-inherited-as-ignored"),
        pytest.param(signal.SIGINT, "", id="SIGINT", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, _IGNORED, id="SIGTERM-inherited-as-ignored", marks=pytest.mark.slow),
    ],
)
def test_a_signal_stops_it_at_once_whoever_watches_and_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, before: str
) -> None:
    with served(tmp_path, before=before) as (process, _), open_watch(tmp_path):
        # Much less than what aiohttp grants to requests that do not end, also on a busy machine.
        process.send_signal(number)
        assert process.wait(3) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        assert (process.stdout.read(), process.stderr.read()) == ("Shoal is stopped\n", "")
    left = files_below(tmp_path)
    assert not [path for path in left if path.endswith((".sock", "endpoints.json", "-wal", "-shm", ".unfinished"))]


@contextmanager
def open_watch(data_dir: Path) -> Iterator[None]:
    """A client in the middle of a watch, whose connection the server has to end by itself."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(data_dir / "api.sock"))
        client.sendall(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: here\r\n\r\n")
        client.settimeout(10)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        yield


def test_killed_it_starts_again_on_the_same_port_with_its_objects_tokens_and_certificates(tmp_path: Path) -> None:
    token_request = {"spec": {"expirationSeconds": 3600}}
    with served(tmp_path) as (process, line):
        ask(tmp_path, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "worker"}})
        path = "/api/v1/namespaces/default/serviceaccounts/worker/token"
        status, answer = ask(tmp_path, "POST", path, token_request)
        assert status == 201
        token = answer["status"]["token"]
        created = ask(tmp_path, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})[1]
        before = yaml.safe_load((tmp_path / "kubeconfig").read_text())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert (tmp_path / "api.sock").exists()
    port = int(line.partition(READY)[2].partition(",")[0])
    with served(tmp_path, port=port) as (_, again):
        assert again == line
        assert ask(tmp_path, "GET", "/api/v1/namespaces/default/configmaps/kept") == (200, created)
        assert whoami(tmp_path, token) == "system:serviceaccount:default:worker"
        after = yaml.safe_load((tmp_path / "kubeconfig").read_text())
        assert after["users"] == before["users"]
        authority = "certificate-authority-data"
        assert after["clusters"][0]["cluster"][authority] == before["clusters"][0]["cluster"][authority]


def whoami(data_dir: Path, token: str) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status, answer = ask(data_dir, "POST", path, review, token=token)
    assert status == 201, answer
    name: str = answer["status"]["userInfo"]["username"]
    return name


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_anyone_may_ask_for_health_and_version(running: Path, path: str) -> None:
    assert ask(running, "GET", path, token="")[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/api"),
        ("GET", "/apis"),
        ("GET", "/metrics"),
        ("GET", "/openapi/v3"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/default/secrets?watch=1"),
        ("POST", "/api/v1/namespaces"),
        ("POST", "/healthz"),
        ("GET", "/no/such/path"),
    ],
)
def test_nobody_gets_anything_else(running: Path, method: str, path: str) -> None:
    status, answer = ask(running, method, path, token="")
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot' in answer["message"]


def test_a_wrong_token_is_not_anonymous(running: Path) -> None:
    assert ask(running, "GET", "/version", token="wrong")[0] == 401


async def test_its_own_client_works_by_kubeconfig_and_by_the_socket(running: Path) -> None:
    by_kubeconfig = load_connection(kubeconfig=running / "kubeconfig")
    by_socket = Connection(server=f"unix://{running / 'api.sock'}")
    for connection in (by_kubeconfig, by_socket):
        transport = HttpTransport(connection)
        try:
            answer = await transport.send(Request(method="GET", path="/api/v1/namespaces/default"))
            assert (answer.status, json.loads(answer.body)["metadata"]["name"]) == (200, "default")
        finally:
            await transport.close()


def test_the_help_fits_80_columns_and_names_every_option() -> None:
    asked = shoal("apiserver", "--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert max(map(len, asked.stdout.splitlines())) <= 80
    for option in ("--data-dir", "--bind", "--api-port", "--durable", "--no-durable"):
        assert option in asked.stdout
