from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from shoal.cluster.node.process.client import Runtime, RuntimeFault
from shoal.cluster.node.process.runtime.protocol import ExecSpec, Facts, SocketSpec
from tests.support.node.runtime_program import PATH, Program, a_container, a_folder, a_runtime, a_sandbox
from tests.support.programs.ordinary_user import is_root
from tests.support.waiting import eventually, is_alive


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder(is_ordinary=not is_root()) as made:
        yield made


@pytest.fixture
def program(folder: Path) -> Iterator[Program]:
    with a_runtime(folder, is_ordinary=not is_root()) as made:
        yield made


@pytest.fixture
async def runtime(program: Program) -> AsyncIterator[Runtime]:
    made = await asyncio.wait_for(Runtime.connect(program.socket), 10)
    yield made
    await made.aclose()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_it_waits_until_there_is_a_runtime_that_answers(folder: Path) -> None:
    connecting = asyncio.create_task(Runtime.connect(folder / "runtime.sock"))
    tries: list[asyncio.StreamWriter] = []

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.append(writer)
        writer.close()

    silent = await asyncio.start_unix_server(hang_up, folder / "runtime.sock")
    await eventually(lambda: len(tries) >= 2)
    assert not connecting.done()
    silent.close()
    with a_runtime(folder, is_ordinary=not is_root()):
        runtime = await asyncio.wait_for(connecting, 10)
        assert runtime.facts.has_namespaces
        await runtime.aclose()


async def test_a_socket_may_have_a_long_path(folder: Path) -> None:
    deep = folder / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    with a_runtime(deep, is_ordinary=not is_root()) as program:
        runtime = await asyncio.wait_for(Runtime.connect(program.socket), 10)
        assert await runtime.sandboxes() == []
        await runtime.aclose()


async def test_an_end_is_told_after_the_start_was(runtime: Runtime, folder: Path) -> None:
    await runtime.open(a_sandbox())
    happened: list[str] = []
    runtime.on_end(lambda state: happened.append(f"ended {state.name}"))

    async def start(number: int) -> None:
        await runtime.start(a_container(folder, "/bin/true", number=number))
        happened.append(f"started c{number}")

    await asyncio.gather(*(start(number) for number in range(5)))
    await eventually(lambda: len(happened) == 10)
    for number in range(5):
        assert happened.index(f"started c{number}") < happened.index(f"ended c{number}")


async def test_many_questions_are_under_way_at_once(runtime: Runtime) -> None:
    opened = await asyncio.gather(
        *(runtime.open(a_sandbox(f"pod-{number}", address=f"10.88.0.{number + 2}")) for number in range(100))
    )
    assert [one.uid for one in opened] == [f"pod-{number}" for number in range(100)]


async def test_questions_that_do_not_fit_the_socket_arrive_all_the_same(runtime: Runtime) -> None:
    sysctls = {"x" * 1_000_000: "1"}
    refusals = await asyncio.gather(
        *(runtime.open(a_sandbox(f"pod-{number}", sysctls=sysctls)) for number in range(10)), return_exceptions=True
    )
    assert {fault.reason for fault in refusals if isinstance(fault, RuntimeFault)} == {"SysctlForbidden"}


async def test_who_waits_is_told_when_the_runtime_is_gone(runtime: Runtime, folder: Path) -> None:
    await runtime.open(a_sandbox())
    spec = a_container(folder, "/bin/sleep", "1000")
    await runtime.start(spec)
    nothing = os.open(os.devnull, os.O_RDWR)
    command = await runtime.execute(ExecSpec(container=spec.id, argv=["sleep", "1000"], env=[PATH]), [nothing] * 3)
    os.close(nothing)
    waiting = asyncio.create_task(command.wait())
    os.kill(runtime.facts.pid, signal.SIGSTOP)
    asking = asyncio.create_task(runtime.sandboxes())
    await asyncio.sleep(0)
    os.kill(runtime.facts.pid, signal.SIGKILL)
    await asyncio.wait_for(runtime.closed.wait(), 10)
    for one in (waiting, asking, runtime.sandboxes(), command.wait()):
        with pytest.raises(RuntimeFault) as fault:
            await asyncio.wait_for(one, 10)
        assert fault.value.reason == "Disconnected"


async def test_one_who_stops_to_wait_for_a_command_ends_it(runtime: Runtime, folder: Path) -> None:
    await runtime.open(a_sandbox())
    spec = a_container(folder, "/bin/sleep", "1000")
    state = await runtime.start(spec)
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    wanted = ExecSpec(container=spec.id, argv=["/bin/sleep", "1000"], env=[PATH])
    asking = asyncio.create_task(runtime.execute(wanted, [nothing, writing, nothing]))
    await asyncio.sleep(0)
    asking.cancel()
    os.close(nothing)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        os.set_blocking(end.fileno(), False)
        await eventually(lambda: end.read(1) == b"")
    assert is_alive(state.pid)


async def test_descriptors_that_nobody_waits_for_are_closed(runtime: Runtime) -> None:
    await runtime.sandboxes()
    before = open_files()
    asking = [asyncio.create_task(runtime.socket(SocketSpec())) for _ in range(10)]
    await asyncio.sleep(0)
    for one in asking:
        one.cancel()
    await runtime.sandboxes()
    assert open_files() == before


async def test_a_socket_comes_ready_for_the_event_loop(runtime: Runtime) -> None:
    with await runtime.socket(SocketSpec(address="10.88.0.1", port=53)) as listening:
        assert not listening.getblocking()
        assert listening.getsockname() == ("10.88.0.1", 53)


async def test_a_runtime_of_another_version_is_not_talked_to(folder: Path) -> None:
    facts = Facts(
        version=99, pid=1, has_namespaces=True, has_network=True, has_all_ids=True, has_overlays=True, cgroups=""
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(msgspec.json.encode({"answer": {"number": 1, "result": facts}}) + b"\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(serve, folder / "runtime.sock")
    with pytest.raises(RuntimeFault) as fault:
        await asyncio.wait_for(Runtime.connect(folder / "runtime.sock"), 10)
    assert fault.value.reason == "WrongVersion"
    server.close()
