"""The program as such: clients of all manners, its end, and machines that allow less."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.runtime.protocol import ContainerState, SocketSpec
from tests.cluster.node.process.runtime.conftest import Pod
from tests.support.node.runtime_client import Client, connect
from tests.support.node.runtime_program import Program, a_container, a_runtime, a_sandbox, text_of_log
from tests.support.waiting import eventually, is_alive, wait_until

_FORBID = 'echo $0 > /proc/sys/user/max_user_namespaces && exec "$@"'
FORBIDDEN_AS_ROOT = ("unshare", "--user", "--map-root-user", "sh", "-c", _FORBID, "0")
"""Commands that run another one where no user namespace may be made; in this one it is root and nobody else."""
FORBIDDEN_AS_SOMEBODY = (*FORBIDDEN_AS_ROOT[:-1], "1", "unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Here the one that may be made is used up by making it somebody who is not root."""


def plain(program: Program) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(program.socket))
    made.settimeout(10)
    return made


def is_cut_off(client: socket.socket) -> bool:
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


async def eventually_listed(client: Client, wanted: set[str], *, or_ended: dict[str, ContainerState]) -> None:
    """Returns when all are there: listed, or already ended, since they were seen being started."""
    async with asyncio.timeout(10):
        while True:
            listed = {state.id for sandbox in await client.runtime.sandboxes() for state in sandbox.containers}
            if listed | or_ended.keys() >= wanted:
                return


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class TestClients:
    async def test_all_are_told_of_what_happens(self, client: Client, runtime: Program, pod: Pod) -> None:
        others = [await connect(runtime.socket) for _ in range(3)]
        spec = pod("/bin/true")
        await client.runtime.start(spec)
        for one in (client, *others):
            assert (await one.end_of(spec)).exit_code == 0
        for one in others:
            await one.runtime.aclose()

    async def test_containers_outlive_the_one_who_started_them(
        self, client: Client, runtime: Program, pod: Pod
    ) -> None:
        spec = pod("/bin/sleep", "1000")
        state = await client.runtime.start(spec)
        await client.runtime.aclose()
        again = await connect(runtime.socket)
        assert (await again.runtime.sandboxes())[0].containers == [state]
        await again.runtime.kill(spec.id)
        assert (await again.end_of(spec)).exit_code == 137
        await again.runtime.aclose()

    async def test_what_a_client_was_starting_when_it_went_is_found_by_the_next(
        self, client: Client, runtime: Program, pod: Pod
    ) -> None:
        again = await connect(runtime.socket)
        fine, wrong = pod("/bin/sleep", "1000"), pod("/no/such/program", number=2)
        starts = [asyncio.ensure_future(client.runtime.start(spec)) for spec in (fine, wrong)]
        await asyncio.sleep(0)
        await client.runtime.aclose()
        await asyncio.gather(*starts, return_exceptions=True)
        await eventually_listed(again, {fine.id, wrong.id}, or_ended=again.ended)
        assert (await again.end_of(wrong)).exit_code == 128
        (sandbox,) = await again.runtime.sandboxes()
        assert [state.id for state in sandbox.containers] == [fine.id]
        await again.runtime.aclose()

    @pytest.mark.parametrize(
        "said",
        [
            pytest.param(b"hello\n", id="no JSON"),
            pytest.param(b"{}\n", id="no question"),
            pytest.param(b'{"number": "one", "verb": "facts"}\n', id="no number"),
            pytest.param(b'{"number": 1, "verb": "exec", "descriptors": 3}\n', id="descriptors that never come"),
            pytest.param(b'{"number": 1, "verb": "exec", "descriptors": -3}\n', id="less than no descriptors"),
            pytest.param(b"x" * (9 * 1024 * 1024), id="a line without end"),
            pytest.param(bytes(range(256)) * 100 + b"\n", id="noise"),
        ],
    )
    async def test_one_who_talks_nonsense_is_cut_off_alone(self, client: Client, runtime: Program, said: bytes) -> None:
        with plain(runtime) as stranger:

            def talk() -> None:
                with suppress(BrokenPipeError):
                    stranger.sendall(said)
                assert is_cut_off(stranger)

            await asyncio.to_thread(talk)
        assert await client.runtime.sandboxes() == []
        assert "a client was let go" in runtime.said()

    @pytest.mark.parametrize(
        ("question", "reason"),
        [
            pytest.param({"verb": "dance"}, "UnknownVerb", id="an unknown verb"),
            pytest.param({"verb": "open", "given": {"uid": 5}}, "Invalid", id="of another type"),
            pytest.param({"verb": "start", "given": {}}, "Invalid", id="without what is needed"),
            pytest.param({"verb": "signal", "given": {"id": "x", "number": 1}}, "NoContainer", id="to nobody"),
            pytest.param({"verb": "open", "given": "x"}, "Invalid", id="not an object"),
            pytest.param(
                {
                    "verb": "start",
                    "given": {"id": "../..", "sandbox": "p", "name": "c", "argv": [], "scratch": "/", "log": "/x"},
                },
                "Invalid",
                id="no id",
            ),
        ],
    )
    async def test_a_question_that_cannot_be_is_refused(
        self, runtime: Program, question: dict[str, object], reason: str
    ) -> None:
        with plain(runtime) as stranger:
            stranger.sendall(json.dumps({"number": 7, **question}).encode() + b"\n")
            answer = json.loads(await asyncio.to_thread(stranger.recv, 65536))["answer"]
        assert (answer["number"], answer["reason"]) == (7, reason)
        assert answer["message"]

    async def test_one_who_does_not_read_holds_up_nobody(self, client: Client, runtime: Program, pod: Pod) -> None:
        for number in range(20):
            await client.runtime.open(a_sandbox(f"pod-{number + 2}", address=f"10.88.0.{number + 9}"))
        with plain(runtime) as stranger:
            question = b'{"number": 1, "verb": "list"}\n'

            def ask_and_never_listen() -> None:
                with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
                    while True:
                        stranger.sendall(question * 100)

            asking = asyncio.create_task(asyncio.to_thread(ask_and_never_listen))
            while not asking.done():
                async with asyncio.timeout(5):
                    assert len(await client.runtime.sandboxes()) == 21
            await asking
        assert "does not read" in runtime.said()

    async def test_nothing_is_left_of_those_who_come_and_go(self, client: Client, runtime: Program, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        pid = client.runtime.facts.pid
        before = open_files(pid)
        for _ in range(30):
            with plain(runtime) as stranger:
                socket.send_fds(stranger, [b'{"number": 1, "verb"'], [0, 1, 2])
            other = await connect(runtime.socket)
            (await other.runtime.socket(SocketSpec(sandbox="pod-1"))).close()
            await other.runtime.aclose()
        await eventually(lambda: open_files(pid) == before)

    async def test_too_many_are_turned_away(self, client: Client, runtime: Program) -> None:
        strangers = [plain(runtime) for _ in range(70)]
        await asyncio.to_thread(is_cut_off, strangers[-1])
        assert await client.runtime.sandboxes() == []
        for one in strangers:
            one.close()
        later = await connect(runtime.socket)
        await later.runtime.aclose()

    def test_only_its_owner_may_ask(self, runtime: Program) -> None:
        assert stat.S_IMODE(runtime.socket.stat().st_mode) == 0o600


class TestTheEnd:
    def test_one_that_cannot_serve_says_why(self, folder: Path, is_ordinary: bool) -> None:
        (folder / "runtime.sock").mkdir()
        with (
            pytest.raises(AssertionError, match=r"the runtime of containers cannot start: .*runtime.sock"),
            a_runtime(folder, is_ordinary=is_ordinary),
        ):
            pass

    async def test_stopping_asks_containers_first(self, client: Client, runtime: Program, pod: Pod) -> None:
        polite = pod("/bin/sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done")
        stubborn = pod("/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done", number=2)
        states = [await client.runtime.start(spec) for spec in (polite, stubborn)]
        for spec in (polite, stubborn):
            await eventually(lambda spec=spec: "up" in text_of_log(spec))  # type: ignore[misc]
        assert await asyncio.to_thread(runtime.stop) == 0
        assert text_of_log(polite) == "up\nbye\n"
        assert not [state for state in states if is_alive(state.pid)]
        assert not runtime.socket.exists()

    async def test_while_it_stops_nothing_is_started_and_nobody_is_told_of_ends(
        self, client: Client, runtime: Program, pod: Pod
    ) -> None:
        """Those are its own doing: whoever saw one would think that the program had done what it was to do."""
        polite = pod("/bin/sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done")
        stubborn = pod("/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done", number=2)
        for spec in (polite, stubborn):
            await client.runtime.start(spec)
            await eventually(lambda spec=spec: "up" in text_of_log(spec))  # type: ignore[misc]
        runtime.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(client.runtime.closed.wait(), 10)
        await eventually(lambda: "bye" in text_of_log(polite))
        assert runtime.process.poll() is None
        with pytest.raises(RuntimeFault) as fault:
            await client.runtime.open(a_sandbox("pod-2", address="10.88.0.3"))
        assert fault.value.reason == "Disconnected"
        assert not runtime.socket.exists()
        await asyncio.to_thread(runtime.process.wait, 10)
        assert client.ended == {}

    async def test_if_it_is_killed_no_process_stays(self, client: Client, runtime: Program, pod: Pod) -> None:
        script = "trap '' TERM HUP; sleep 1000 & setsid sleep 1000 & echo up; wait"
        specs = [pod("/bin/sh", "-c", script, number=number) for number in range(5)]
        states = [await client.runtime.start(spec) for spec in specs]
        for spec in specs:
            await eventually(lambda spec=spec: "up" in text_of_log(spec))  # type: ignore[misc]
        family = {pid for state in states for pid in (state.pid, *children(state.pid))}
        assert len(family) == 15
        # Some are just being started when it happens.
        starts = [
            asyncio.ensure_future(client.runtime.start(pod("/bin/sleep", "1000", number=number)))
            for number in range(10, 20)
        ]
        await asyncio.sleep(0)
        os.kill(client.runtime.facts.pid, signal.SIGKILL)
        await asyncio.wait_for(client.runtime.closed.wait(), 10)
        await asyncio.gather(*starts, return_exceptions=True)
        wait_until(lambda: not [pid for pid in family if is_alive(pid)], "all containers to end", within=10)
        wait_until(lambda: not processes_of(runtime), "all processes of the runtime to end", within=10)

    async def test_no_mount_and_no_group_stays(self, client: Client, runtime: Program, pod: Pod, folder: Path) -> None:
        pid = client.runtime.facts.pid
        await client.run(pod("/bin/true"))
        await client.runtime.start(pod("/bin/sleep", "1000", number=2))
        assert await asyncio.to_thread(runtime.stop) == 0
        assert str(folder) not in Path("/proc/self/mountinfo").read_text()
        assert list((folder / "root").iterdir()) == []
        assert not list(Path("/sys/fs/cgroup").glob(f"**/shoal-{pid}"))


class TestMachinesThatAllowLess:
    @pytest.mark.parametrize("before", [FORBIDDEN_AS_ROOT, FORBIDDEN_AS_SOMEBODY], ids=["as-root", "as-somebody"])
    async def test_without_namespaces_containers_are_plain_processes(
        self, folder: Path, is_ordinary: bool, before: tuple[str, ...]
    ) -> None:
        with a_runtime(folder, is_ordinary=is_ordinary, before=before) as program:
            client = await connect(program.socket)
            facts = client.runtime.facts
            assert (facts.has_namespaces, facts.has_network, facts.has_overlays) == (False, False, False)
            assert "no user namespace may be made" in facts.shortfalls[0]
            assert (await client.runtime.open(a_sandbox())).address == ""
            spec = a_container(folder, "/bin/sh", "-c", "echo $0 $PPID; exit 9", "plain")
            assert (await client.run(spec)).exit_code == 9
            assert text_of_log(spec).startswith("plain ")
            long = a_container(folder, "/bin/sh", "-c", "sleep 1000 & sleep 1000; :", number=2)
            state = await client.runtime.start(long)
            await eventually(lambda: len(children(state.pid)) == 2)
            family = children(state.pid)
            await client.runtime.kill(long.id)
            assert (await client.end_of(long)).exit_code == 137
            assert not [pid for pid in family if is_alive(pid)]
            third = a_container(folder, "/bin/sleep", "1000", number=3)
            last = await client.runtime.start(third)
            os.kill(facts.pid, signal.SIGKILL)
            wait_until(lambda: not is_alive(last.pid), "the container to end with the runtime")
            await client.runtime.aclose()

    async def test_on_the_machines_network_pods_have_no_address_of_their_own(
        self, folder: Path, is_ordinary: bool
    ) -> None:
        with (
            a_runtime(folder, "--pod-network", "host", is_ordinary=is_ordinary) as program,
            socket.create_server(("127.0.0.1", 0)) as outside,
        ):
            client = await connect(program.socket)
            facts = client.runtime.facts
            assert (facts.has_namespaces, facts.has_network) == (True, False)
            assert not [one for one in facts.shortfalls if "network" in one]
            assert (await client.runtime.open(a_sandbox(hostname="web-0"))).address == ""
            port = outside.getsockname()[1]
            call = f"hostname; exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
            spec = a_container(folder, "/bin/bash", "-c", call)
            assert (await client.run(spec)).exit_code == 0
            assert text_of_log(spec) == "web-0\nreached\n"
            listening = await client.runtime.socket(SocketSpec(address="127.0.0.1"))
            with socket.create_connection(listening.getsockname(), timeout=5):
                listening.close()
            await client.runtime.aclose()


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processes_of(program: Program) -> list[int]:
    """Those that are the runtime or copies of it, told by what they were started with."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_alive(int(entry.name)):
            try:
                if str(program.socket).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
