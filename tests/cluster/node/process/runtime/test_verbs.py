"""What the runtime can be asked for, asked of the whole program."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.cluster.node.process.client import Command, Runtime, RuntimeFault
from shoal.cluster.node.process.runtime.protocol import (
    Bind,
    ContainerSpec,
    ContainerState,
    ExecSpec,
    Limits,
    SocketSpec,
)
from tests.cluster.node.process.runtime.conftest import Pod
from tests.support.node.runtime_client import Client, connect
from tests.support.node.runtime_program import PATH, Program, a_container, a_sandbox, text_of_log
from tests.support.waiting import eventually, is_alive

SERVE = "import socket; s = socket.create_server(('{}', 80)); print('up', flush=True); s.accept()[0].sendall(b'hello')"


async def output_of(runtime: Runtime, spec: ExecSpec, *, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    pipes = [os.pipe() for _ in range(3)]
    (reads_in, writes_in), (reads_out, writes_out), (reads_err, writes_err) = pipes
    try:
        os.write(writes_in, stdin)
        os.close(writes_in)
        command = await runtime.execute(spec, [reads_in, writes_out, writes_err])
    finally:
        for one in (reads_in, writes_out, writes_err):
            os.close(one)
    code = await asyncio.wait_for(command.wait(), 10)
    with os.fdopen(reads_out, "rb") as out, os.fdopen(reads_err, "rb") as err:
        return code, out.read(), err.read()


class TestContainers:
    async def test_a_program_runs_and_what_it_writes_is_logged(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sh", "-c", "echo hi; echo oh >&2; exit 3")
        state = await client.run(spec)
        assert (state.exit_code, state.signal, state.is_out_of_memory) == (3, 0, False)
        assert state.finished is not None
        assert state.started <= state.finished
        assert sorted(text_of_log(spec).split()) == ["hi", "oh"]

    @pytest.mark.parametrize(
        ("script", "code", "number"),
        [
            pytest.param("exit 0", 0, 0, id="done"),
            pytest.param("exit 77", 77, 0, id="failed"),
            pytest.param("kill -9 $$", 137, 9, id="killed"),
            pytest.param("kill -TERM $$", 143, 15, id="terminated"),
        ],
    )
    async def test_how_it_ended_is_told(self, client: Client, pod: Pod, script: str, code: int, number: int) -> None:
        state = await client.run(pod("/bin/sh", "-c", script))
        assert (state.exit_code, state.signal) == (code, number)

    async def test_a_signal_reaches_the_program(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sh", "-c", "trap 'exit 5' USR1; echo ready; while :; do sleep 0.02; done")
        state = await client.runtime.start(spec)
        assert is_alive(state.pid)
        await eventually(lambda: "ready" in text_of_log(spec))
        await client.runtime.signal(spec.id, signal.SIGUSR1)
        assert (await client.end_of(spec)).exit_code == 5
        await client.runtime.signal(spec.id, signal.SIGUSR1)  # to one that has ended: fine

    async def test_kill_ends_all_of_it(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000 & echo ready; wait")
        state = await client.runtime.start(spec)
        await eventually(lambda: "ready" in text_of_log(spec))
        family = [int(one) for one in Path(f"/proc/{state.pid}/task/{state.pid}/children").read_text().split()]
        assert len(family) == 2
        await client.runtime.kill(spec.id)
        assert (await client.end_of(spec)).exit_code == 137
        assert not [pid for pid in (state.pid, *family) if is_alive(pid)]

    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            pytest.param({"argv": ["no-such-program"]}, "no-such-program", id="not in PATH"),
            pytest.param({"argv": ["/no/such/program"]}, "/no/such/program", id="no such file"),
            pytest.param({"argv": ["/etc/passwd"]}, "permission denied", id="not executable"),
            pytest.param({"argv": ["/bin/true"], "directory": "/etc/passwd"}, "/etc/passwd", id="not a folder"),
            pytest.param(
                {"argv": ["/bin/true"], "binds": [Bind(source="/no/volume", target="/data")]},
                "/no/volume",
                id="no volume",
            ),
        ],
    )
    async def test_a_program_that_cannot_be_started_leaves_nothing(
        self, client: Client, pod: Pod, fields: dict[str, object], says: str
    ) -> None:
        with pytest.raises(RuntimeFault) as fault:
            await client.runtime.start(pod(**fields))
        assert fault.value.reason == "StartError"
        assert says in fault.value.message
        (sandbox,) = await client.runtime.sandboxes()
        assert sandbox.containers == []
        assert client.ended == {}

    async def test_what_is_kept_is_listed_until_it_is_removed(self, client: Client, pod: Pod) -> None:
        ended, running = pod("/bin/true"), pod("/bin/sleep", "1000", number=2)
        final = await client.run(ended)
        started = await client.runtime.start(running)
        (sandbox,) = await client.runtime.sandboxes()
        assert (sandbox.uid, sandbox.name, sandbox.address) == ("pod-1", "default/pod-1", "10.88.0.2")
        assert sandbox.containers == [final, started]
        await client.runtime.remove(ended.id)
        await client.runtime.remove(running.id)
        assert not is_alive(started.pid)
        assert (await client.runtime.sandboxes())[0].containers == []
        await client.runtime.remove(running.id)  # again: fine

    async def test_a_start_that_is_asked_for_again_starts_nothing_more(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        first, second = await asyncio.gather(client.runtime.start(spec), client.runtime.start(spec))
        assert first == second == await client.runtime.start(spec)

    async def test_stdin_is_written_by_whoever_asks(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/cat", has_stdin=True, closes_stdin=True)
        await client.runtime.start(spec)
        descriptor = await client.runtime.stdin(spec.id)
        os.write(descriptor, b"a line\n")
        os.close(descriptor)
        assert (await client.end_of(spec)).exit_code == 0
        assert text_of_log(spec) == "a line\n"

    async def test_stdin_of_a_terminal_is_its_master(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sh", "-c", "tty >/dev/null && read line && echo got $line", has_stdin=True, has_tty=True)
        await client.runtime.start(spec)
        descriptor = await client.runtime.stdin(spec.id)
        os.write(descriptor, b"words\n")
        assert (await client.end_of(spec)).exit_code == 0
        os.close(descriptor)
        assert "got words" in text_of_log(spec)

    async def test_who_was_started_without_stdin_has_none(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        with pytest.raises(RuntimeFault) as fault:
            await client.runtime.stdin(spec.id)
        assert fault.value.reason == "NoStdin"

    async def test_what_it_uses_is_told(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; sleep 1000")
        await client.runtime.start(spec)
        await eventually(lambda: "done" in text_of_log(spec))
        (reading,) = await client.runtime.usage()
        assert reading.id == spec.id
        assert reading.memory_bytes > 100_000
        assert reading.processes >= 1
        await client.runtime.kill(spec.id)
        await client.end_of(spec)
        assert await client.runtime.usage() == []

    async def test_one_that_takes_too_much_memory_is_told_apart(self, client: Client, pod: Pod) -> None:
        if not client.runtime.facts.cgroups:
            pytest.skip("this runtime may make no control groups")
        spec = pod("/usr/bin/tail", "/dev/zero", limits=Limits(memory_bytes=32 * 1024 * 1024, processes=20))
        state = await client.run(spec)
        assert (state.exit_code, state.is_out_of_memory) == (137, True)

    async def test_a_hundred_run_at_once(self, client: Client, folder: Path) -> None:
        specs = [a_container(folder, "/bin/sleep", "1000", sandbox=f"pod-{number}") for number in range(1, 101)]

        async def begin(number: int, spec: ContainerSpec) -> ContainerState:
            await client.runtime.open(a_sandbox(spec.sandbox, address=f"10.88.1.{number}"))
            return await client.runtime.start(spec)

        states = await asyncio.gather(*(begin(number, spec) for number, spec in enumerate(specs, 1)))
        assert all(is_alive(state.pid) for state in states)
        assert len(await client.runtime.usage()) == 100
        await asyncio.gather(*(client.runtime.close_sandbox(spec.sandbox) for spec in specs))
        assert not [state for state in states if is_alive(state.pid)]
        assert await client.runtime.sandboxes() == []


class TestSandboxes:
    async def test_opening_again_gives_the_one_that_is_there(self, client: Client, pod: Pod) -> None:
        state = await client.runtime.start(pod("/bin/sleep", "1000"))
        assert (await client.runtime.open(a_sandbox())).containers == [state]

    async def test_containers_may_share_their_processes(self, client: Client, folder: Path) -> None:
        await client.runtime.open(a_sandbox(shares_processes=True))
        first, second = (a_container(folder, "/bin/sleep", "1000", number=number) for number in (1, 2))
        states = [await client.runtime.start(spec) for spec in (first, second)]
        wanted = ExecSpec(container=second.id, argv=["/bin/sh", "-c", "cat /proc/[0-9]*/comm"], env=[PATH])
        _, shown, _ = await output_of(client.runtime, wanted)
        assert shown.split().count(b"sleep") == 2
        await client.runtime.kill(first.id)
        await client.end_of(first)
        assert is_alive(states[1].pid)
        await client.runtime.close_sandbox("pod-1")
        assert not is_alive(states[1].pid)

    async def test_closing_ends_all_and_forgets(self, client: Client, pod: Pod) -> None:
        specs = [pod("/bin/sleep", "1000", number=number) for number in range(3)]
        states = [await client.runtime.start(spec) for spec in specs]
        await client.runtime.close_sandbox("pod-1")
        assert not [state for state in states if is_alive(state.pid)]
        assert await client.runtime.sandboxes() == []
        await client.runtime.close_sandbox("pod-1")  # again: fine
        await client.runtime.open(a_sandbox())

    async def test_closing_ends_one_that_is_only_being_started(self, client: Client, pod: Pod) -> None:
        starts = [asyncio.ensure_future(client.runtime.start(pod("/bin/sleep", "1000", number=n))) for n in range(5)]
        await asyncio.sleep(0)
        await client.runtime.close_sandbox("pod-1")
        started = await asyncio.gather(*starts, return_exceptions=True)
        assert await client.runtime.sandboxes() == []
        assert not [one for one in started if isinstance(one, ContainerState) and is_alive(one.pid)]

    async def test_a_container_without_a_sandbox_is_refused(self, client: Client, folder: Path) -> None:
        with pytest.raises(RuntimeFault) as fault:
            await client.runtime.start(a_container(folder, "/bin/true"))
        assert fault.value.reason == "NoSandbox"


class TestNetworks:
    async def test_two_pods_reach_each_other_by_address(self, client: Client, folder: Path) -> None:
        serve = SERVE.format("")
        call = "import socket; print(socket.create_connection(('10.88.0.2', 80)).recv(9).decode())"
        python = python_inside()
        await client.runtime.open(a_sandbox("server"))
        await client.runtime.open(a_sandbox("caller", address="10.88.0.3"))
        server = a_container(folder, python, "-c", serve, sandbox="server")
        caller = a_container(folder, python, "-c", call, sandbox="caller")
        await client.runtime.start(server)
        await eventually(lambda: "up" in text_of_log(server))
        assert (await client.run(caller)).exit_code == 0
        assert text_of_log(caller) == "hello\n"

    async def test_a_socket_in_a_pods_network_reaches_it(self, client: Client, pod: Pod) -> None:
        serve = SERVE.format("127.0.0.1")
        spec = pod(python_inside(), "-c", serve)
        await client.runtime.start(spec)
        await eventually(lambda: "up" in text_of_log(spec))
        calling = await client.runtime.socket(SocketSpec(sandbox="pod-1"))
        async with asyncio.timeout(5):
            await asyncio.get_running_loop().sock_connect(calling, ("127.0.0.1", 80))
            assert await asyncio.get_running_loop().sock_recv(calling, 10) == b"hello"
        calling.close()

    async def test_a_socket_of_the_node_serves_pods(self, client: Client, pod: Pod) -> None:
        listening = await client.runtime.socket(SocketSpec(address="10.96.0.10", port=53))
        call = "import socket; print(socket.create_connection(('10.96.0.10', 53)).recv(9).decode())"
        spec = pod(python_inside(), "-c", call)
        await client.runtime.start(spec)
        async with asyncio.timeout(5):
            accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
        with accepted, listening:
            accepted.send(b"served")
        assert (await client.end_of(spec)).exit_code == 0
        assert text_of_log(spec) == "served\n"

    async def test_a_pod_does_not_reach_what_the_machine_serves_for_itself(self, client: Client, pod: Pod) -> None:
        with socket.create_server(("127.0.0.1", 0)) as outside:
            port = outside.getsockname()[1]
            call = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"
            spec = pod(python_inside(), "-c", call)
            assert (await client.run(spec)).exit_code == 1
            assert "refused" in text_of_log(spec)

    @pytest.mark.parametrize("spec", [SocketSpec(sandbox="nobody"), SocketSpec(address="a.name", port=1)])
    async def test_a_socket_that_cannot_be_had_is_refused(self, client: Client, spec: SocketSpec) -> None:
        with pytest.raises(RuntimeFault):
            await client.runtime.socket(spec)


class TestCommands:
    async def test_a_command_has_the_callers_pipes(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        script = "cat; echo oh >&2; hostname; exit 4"
        wanted = ExecSpec(container=spec.id, argv=["/bin/sh", "-c", script], env=[PATH])
        assert await output_of(client.runtime, wanted, stdin=b"in\n") == (4, b"in\npod-1\n", b"oh\n")

    async def test_a_command_may_have_a_terminal(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        wanted = ExecSpec(
            container=spec.id,
            argv=["/bin/sh", "-c", "stty size; read x; exit $x"],
            env=[PATH],
            has_tty=True,
            rows=30,
            columns=90,
        )
        command = await client.runtime.execute(wanted)
        assert command.terminal is not None
        os.set_blocking(command.terminal, False)
        shown = b""

        def shows_size() -> bool:
            nonlocal shown
            with suppress(BlockingIOError):
                shown += os.read(command.terminal or 0, 100)
            return b"30 90" in shown

        await eventually(shows_size)
        os.write(command.terminal, b"6\n")
        assert await asyncio.wait_for(command.wait(), 5) == 6
        os.close(command.terminal)

    async def test_a_terminal_that_is_closed_hangs_up(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        wanted = ExecSpec(container=spec.id, argv=["/bin/sleep", "1000"], env=[PATH], has_tty=True)
        command = await client.runtime.execute(wanted)
        assert command.terminal is not None
        os.close(command.terminal)
        assert await asyncio.wait_for(command.wait(), 5) == 128 + signal.SIGHUP

    async def test_a_command_can_be_signalled(self, client: Client, pod: Pod) -> None:
        command = await a_long_command(client, pod)
        await command.signal(signal.SIGTERM)
        assert await asyncio.wait_for(command.wait(), 5) == 143
        await command.signal(signal.SIGTERM)  # to one that has ended: fine

    async def test_a_command_ends_with_its_container(self, client: Client, pod: Pod) -> None:
        command = await a_long_command(client, pod)
        await client.runtime.close_sandbox("pod-1")
        assert await asyncio.wait_for(command.wait(), 5) == 137

    async def test_a_command_that_is_not_there_is_refused(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        with pytest.raises(RuntimeFault) as fault:
            await output_of(client.runtime, ExecSpec(container=spec.id, argv=["no-such-command"], env=[PATH]))
        assert fault.value.reason == "StartError"
        assert "no-such-command" in fault.value.message

    async def test_no_command_runs_in_a_container_that_ended(self, client: Client, pod: Pod) -> None:
        spec = pod("/bin/true")
        await client.run(spec)
        with pytest.raises(RuntimeFault) as fault:
            await output_of(client.runtime, ExecSpec(container=spec.id, argv=["true"], env=[PATH]))
        assert fault.value.reason == "NotRunning"

    async def test_a_command_of_one_who_is_gone_is_hung_up(self, client: Client, runtime: Program, pod: Pod) -> None:
        spec = pod("/bin/sleep", "1000")
        await client.runtime.start(spec)
        other = await connect(runtime.socket)
        told = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        wanted = ExecSpec(container=spec.id, argv=["/bin/sh", "-c", "sleep 1000 & echo up; wait"], env=[PATH])
        await other.runtime.execute(wanted, [nothing, told[1], nothing])
        os.close(nothing)
        os.close(told[1])
        with os.fdopen(told[0], "rb") as end:
            os.set_blocking(end.fileno(), False)
            await eventually(lambda: end.read(3) == b"up\n")
            await other.runtime.aclose()
            await eventually(lambda: end.read(1) == b"")
        assert (await client.runtime.sandboxes())[0].containers[0].exit_code is None


async def a_long_command(client: Client, pod: Pod) -> Command:
    spec = pod("/bin/sleep", "1000")
    await client.runtime.start(spec)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        wanted = ExecSpec(container=spec.id, argv=["/bin/sleep", "1000"], env=[PATH])
        return await client.runtime.execute(wanted, [nothing] * 3)
    finally:
        os.close(nothing)


def python_inside() -> str:
    """An interpreter that everybody can execute."""
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(path).exists():
            return path
    pytest.skip("this machine has no python3 in its usual place")
