"""``replay`` and ``explain`` as people and scripts use them; the commands alone, whatever they are registered under."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import typer
import yaml
from rich.cells import cell_len

from shoal.cli import scheduling
from shoal.cli.exits import run
from shoal.cli.scheduling.pages import answer_page
from shoal.cli.scheduling.replaying import _setting
from shoal.scheduler.explaining import Answer, State, explain
from shoal.scheduler.explaining.words import moment
from shoal.scheduler.snapshots import packed
from tests.scheduler.builders import a_model_gpu_queue, a_model_node
from tests.scheduler.explaining.stage import a_cluster, a_job, a_request, after_a_cycle
from tests.scheduler.snapshots.documents import a_busy_cluster, a_document

APP = typer.Typer()
APP.command()(scheduling.replay)
APP.command()(scheduling.explain)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.zip"
    file.write_bytes(packed(a_document(a_busy_cluster())))
    return file


def printed(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert run(APP, [str(one) for one in arguments]) == code
    captured = capsys.readouterr()
    assert (captured.err == "") == (code == 0)
    return captured.err if code else captured.out


def test_a_replay_is_a_page_of_80_columns(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "replay", snapshot)
    assert "2 nodes, 3 jobs at 2027-01-15T08:00:00Z: 1 pods placed" in page
    assert "default/small-0   n2     1      now\n" in page
    assert "default/gang (queue team-a, place 1): Waiting\n" in page
    assert max(cell_len(line) for line in page.splitlines()) <= 80


def test_a_replay_is_json_for_scripts(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(printed(capsys, "replay", snapshot, "-o", "json"))
    assert [one["pod"] for one in told["placements"]] == ["small-0"]
    assert told["waiting"][0]["job"] == "gang"
    assert yaml.safe_load(printed(capsys, "replay", snapshot, "-o", "yaml"))["actions"] == told["actions"]


def test_more_nodes_are_a_what_if(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "replay", snapshot, "--add-nodes", "2xH100")
    assert "Placed now\n" in page
    assert "default/gang-0   added-0-" in page
    assert "Wait no longer\n" in page
    assert page.endswith("0 jobs wait in the end\n")
    told = json.loads(
        printed(capsys, "replay", snapshot, "--add-nodes", "1x8:A100", "--add-nodes", "1x8", "-o", "json")
    )
    assert sorted(one["pod"] for one in told["difference"]["placed"]) == ["gang-0", "gang-1"]
    assert (told["before"]["nodes"], told["after"]["nodes"]) == (2, 4)


def test_a_limit_is_a_what_if(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "replay", snapshot, "--set-limit", "team-a=0")
    assert "Not placed any more\n" in page
    assert "default/small-0" in page
    assert "queue team-a is at its limit: it may hold 0 GPUs" in " ".join(page.split())


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("team-a=64", ("team-a", "gpu", "64")),
        ("team-a.cpu=64", ("team-a", "cpu", "64")),
        ("org.team-a.memory=1Ti", ("org.team-a", "memory", "1Ti")),
        ("org.team-a=unlimited", ("org.team-a", "gpu", "unlimited")),
    ],
)
def test_a_setting_is_about_gpus_unless_it_says_otherwise(text: str, meant: tuple[str, str, str]) -> None:
    assert _setting(text, "--set-quota") == meant


def test_a_job_of_a_file_is_a_what_if(snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "tune", "labels": {"kai.scheduler/queue": "team-a"}},
                "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
            }
        )
    )
    assert "default/tune-0" in printed(capsys, "replay", snapshot, "--submit", job)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--actions", "guess"], "guess is no action", id="action"),
        pytest.param(["--add-nodes", "some"], "pool 'some' is not valid", id="nodes"),
        pytest.param(["--set-quota", "team-a"], "team-a is no setting", id="setting"),
        pytest.param(["--set-quota", "nobody=3"], "queue nobody is not in the snapshot", id="queue"),
        pytest.param(["--submit", "/nowhere/job.yaml"], "name a file that can be read", id="file"),
    ],
)
def test_a_what_if_that_is_none_is_a_usage_error(
    snapshot: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in printed(capsys, "replay", snapshot, *arguments, code=2)


def test_a_file_that_is_no_snapshot_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    assert "is neither an archive" in printed(capsys, "replay", file, code=2)
    assert "no such file" in printed(capsys, "replay", tmp_path / "none.zip", code=2)


class Scheduler(BaseHTTPRequestHandler):
    """Answers as the plugin server does."""

    answers: ClassVar[dict[str, tuple[int, str, bytes]]] = {}
    asked: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        self.asked.append((url.path, query, self.headers.get("Authorization")))
        status, kind, body = self.answers[query["name"][0]]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own word
        return


def an_answer() -> bytes:
    jobs = [
        a_job("young", "b", on="n1", request=a_request(8), started=600),
        a_job("core", "b", on="n2", request=a_request(8), preemptible=False),
        a_job("mine", request=a_request(8)),
    ]
    queues = [a_model_gpu_queue("a", quota=8), a_model_gpu_queue("b", quota=8, reclaim_min_runtime=3600)]
    with after_a_cycle(a_cluster([a_model_node("n1"), a_model_node("n2")], queues, jobs)) as session:
        told = explain(session, jobs[2])
        answer = Answer(kind="job", name="mine", namespace="team", cycle=7, at=moment(session.now), jobs=[told])
    return msgspec.json.encode(answer)


@pytest.fixture
def server() -> Iterator[str]:
    none = b'{"kind":"pod","name":"none","jobs":[],"message":"there is no pod team/none, or it has ended"}'
    Scheduler.answers = {
        "mine": (200, "application/json", an_answer()),
        "none": (404, "application/json", none),
        "secret": (401, "text/plain", b"a bearer token is needed\n"),
    }
    Scheduler.asked.clear()
    served = HTTPServer(("127.0.0.1", 0), Scheduler)
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    thread.join()
    served.server_close()


def test_an_explanation_is_a_page_of_80_columns(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "explain", "job/mine", "-n", "team", "--server", server)
    assert Scheduler.asked[0][:2] == (
        "/api/v1/scheduler/explain",
        {"kind": ["job"], "name": ["mine"], "namespace": ["team"]},
    )
    assert page.startswith("PodGroup team/mine\n")
    assert "state      Waiting (PodSchedulingErrors)\n" in page
    assert "place      1 of 1 in its queue, 1 of 1 in all\n" in page
    assert "- wait until 2027-01-15T08:50:00Z: then a job of queue b is protected no longer\n" in page
    assert "1 job (team/young) with 8 GPUs, 1 CPU cores are protected" in page
    assert page.endswith("as of cycle 7 at 2027-01-15T08:00:00Z\n")
    assert max(cell_len(line) for line in page.splitlines()) <= 80


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (True, "kept for it on n1, n2 and 3 more, where 12 GPUs are free or become so; it can start by 2027-01-15"),
        (False, "kept for team/large, and not for it on n1, n2 and 3 more, where 12 GPUs are free or become so"),
    ],
    ids=["for it", "for another"],
)
def test_room_that_is_kept_is_told(own: bool, said: str) -> None:
    answer = msgspec.json.decode(an_answer())
    (job,) = answer["jobs"]
    free = {"gpus": 12, "cpuCores": 0, "memoryBytes": 0}
    job["kept"] = {"job": "team/large", "own": own, "nodes": ["n1", "n2"], "nodeCount": 5, "free": free}
    job["kept"]["until"] = "2027-01-15T09:00:00Z"
    page = answer_page(answer)
    assert said in " ".join(page.split())
    assert max(cell_len(line) for line in page.splitlines()) <= 80


def test_an_explanation_is_json_for_scripts(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = tmp_path / "token"
    token.write_text("good\n")
    told = json.loads(printed(capsys, "explain", "job/mine", "--server", server, "--token-file", token, "-o", "json"))
    assert told["jobs"][0]["state"] == "Waiting"
    assert Scheduler.asked[0][2] == "Bearer good"


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        pytest.param("pod/none", 1, "there is no pod team/none", id="not there"),
        pytest.param("pod/secret", 4, "a bearer token is needed", id="refused"),
        pytest.param("pod", 2, "write podgroup/NAME", id="no name"),
    ],
)
def test_what_is_not_answered_is_told_in_a_sentence(
    server: str, capsys: pytest.CaptureFixture[str], what: str, code: int, said: str
) -> None:
    assert said in printed(capsys, "explain", what, "-n", "team", "--server", server, code=code)


def test_nobody_there_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "explain", "pod/x", "--server", "http://127.0.0.1:9", code=5)
    assert said.startswith("shoal: no scheduler answers at http://127.0.0.1:9")


PAGE = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
SHOWN = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_for_users_shows_what_is_printed(
    server: str, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [
        printed(capsys, "explain", "podgroup/mine", "-n", "team", "--server", server),
        printed(capsys, "replay", snapshot),
        printed(capsys, "replay", snapshot, "--add-nodes", "2xH100"),
    ] == SHOWN


def test_the_page_for_users_names_every_state() -> None:
    assert [state.value for state in State if f"`{state.value}`" not in PAGE] == []


def test_a_stale_data_dir_has_its_token_sent_to_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a crash its ports may be anybody's."""
    heard: list[str] = []

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("Authorization", ""))
            self.send_error(404)

    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        data = tmp_path / "data"
        (data / "pki").mkdir(parents=True)
        (data / "pki" / "admin.token").write_text("secret")
        (data / "lock").write_text("1")
        (data / "endpoints.json").write_text(json.dumps({"visualizer": f"http://127.0.0.1:{server.server_port}"}))
        assert run(APP, ["explain", "pod/x", f"--data-dir={data}"]) != 0
        server.shutdown()
    capsys.readouterr()
    assert heard == []
