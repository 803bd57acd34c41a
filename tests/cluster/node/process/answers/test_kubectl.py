"""The real kubectl, into real containers: what it prints is what a user sees."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.node.process.answers.conftest import Household
from tests.support.clusters.client import until
from tests.support.programs import kube_binaries
from tests.support.programs.ordinary_user import is_root
from tests.support.waiting import eventually

pytestmark = pytest.mark.kube

SERVER = """
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        data = self.rfile.read()
        self.wfile.write(b"%d bytes, the first of them " % len(data) + data[:5])
socketserver.ThreadingTCPServer.allow_reuse_address = True
server = socketserver.ThreadingTCPServer(("127.0.0.1", 80), Echo)
print("serving", flush=True)
server.serve_forever()
"""


@pytest.fixture(params=["root", "ordinary"])
def is_ordinary(request: pytest.FixtureRequest) -> bool:
    """Both are tried where tests run as root."""
    if request.param == "root" and not is_root():
        pytest.skip("only root can start the runtime as root")
    return bool(request.param == "ordinary")


async def test_logs_of_this_life_and_the_one_before(household: Household) -> None:
    kubectl = household.kubectl
    await household.start("web", "sh", "-c", "echo first life; exit 1")
    await household.end_of("web")
    _, _, err = await kubectl("logs", "--previous", "web")
    assert 'previous terminated container "main" in pod "web" not found' in err
    await household.start("web", "sh", "-c", "for n in 1 2 3; do echo line $n; done; printf '\\377unfinished'; sleep 1")
    following = await kubectl.start("logs", "-f", "web")
    assert (await kubectl("logs", "--previous", "web"))[:2] == (0, "first life\n")
    async with asyncio.timeout(20):
        out, _ = await following.communicate()
    assert (following.returncode, out) == (0, b"line 1\nline 2\nline 3\n\xffunfinished")
    assert (await kubectl("logs", "web", "--limit-bytes=6"))[1] == "line 1"
    code, out_timed, _ = await kubectl("logs", "web", "--tail=2", "--limit-bytes=38", "--timestamps")
    assert (code, out_timed[30:]) == (0, " line 3\n")


async def test_commands_have_input_exit_codes_and_reasons(household: Household) -> None:
    kubectl = household.kubectl
    await household.start("web", "sleep", "1000")
    text = "many words\n" * 20_000
    assert await kubectl("exec", "-i", "web", "--", "cat", stdin=text.encode()) == (0, text, "")
    code, out, err = await kubectl("exec", "web", "--", "sh", "-c", "echo no >&2; exit 7")
    assert (code, out, err) == (7, "", "no\ncommand terminated with exit code 7\n")
    code, _, err = await kubectl("exec", "web", "--", "nope")
    assert (code, "error executing command in container" in err, "nope" in err) == (1, True, True), err


async def test_a_terminal_of_kubectls_own_reaches_into_the_container(household: Household, tmp_path: Path) -> None:
    await household.start("web", "sleep", "1000")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
    binary = kube_binaries.binary("kubectl")
    assert binary is not None
    options = [f"--kubeconfig={household.kubectl.kubeconfig}", "exec", "-it", "web", "--", "sh", "-i"]
    environment = {**os.environ, "KUBECACHEDIR": str(tmp_path / "cache")}
    process = await asyncio.create_subprocess_exec(
        binary, *options, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    os.set_blocking(master, False)
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):
            shown.extend(os.read(master, 4096))

    asyncio.get_running_loop().add_reader(master, read)
    try:
        os.write(master, b"tty; echo $TERM-$((1+1))\n")
        await eventually(lambda: b"xterm-2" in shown)
        # kubectl sends the size after the command has begun.
        await eventually(lambda: os.write(master, b"stty size\n") and b"31 97" in shown)
        assert b"/dev/pts/" in shown
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
        process.send_signal(28)
        await eventually(lambda: os.write(master, b"stty size\n") and b"50 150" in shown)
        os.write(master, b"exit 3\n")
        async with asyncio.timeout(10):
            assert await process.wait() == 3
    finally:
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)


async def test_files_are_copied_both_ways(household: Household, tmp_path: Path) -> None:
    await household.start("web", "sleep", "1000")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "large").write_bytes(os.urandom(5_000_000))
    (tmp_path / "there" / "small").write_text("words\n")
    code, _, err = await household.kubectl("cp", str(tmp_path / "there"), "web:/tmp/there")
    assert code == 0, err
    code, _, err = await household.kubectl("cp", "web:/tmp/there", str(tmp_path / "back"))
    assert code == 0, err
    for name in ("large", "small"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


async def test_ports_of_a_pods_own_network_are_reached(household: Household) -> None:
    await household.start("web", "python3", "-c", SERVER, says=b"serving")
    process = await household.kubectl.start("port-forward", "web", ":80", ":81")
    assert process.stdout is not None
    assert process.stderr is not None
    printed, complained = process.stdout, process.stderr

    async def local_port() -> int:
        async with asyncio.timeout(10):
            while not (line := await printed.readline()).startswith(b"Forwarding from 127.0.0.1:"):
                assert line, await complained.read()
        return int(line.split()[2].rpartition(b":")[2])

    async def ask(port: int, question: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(question)
        writer.write_eof()
        async with asyncio.timeout(20):
            answer = await reader.read()
        writer.close()
        return answer

    try:
        port, closed = await local_port(), await local_port()
        answers = await asyncio.gather(*(ask(port, b"hello" * size) for size in (1, 100, 1_000_000, 2_000_000)))
        sizes = (5, 500, 5_000_000, 10_000_000)
        assert answers == [b"%d bytes, the first of them hello" % size for size in sizes]
        assert await ask(closed, b"x") == b""
        async with asyncio.timeout(10):
            complaint = await complained.readline()
        assert b"error forwarding port 81 to pod default/web" in complaint
        assert b"connection refused" in complaint
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def test_attach_feeds_and_shows_the_main_process(household: Household) -> None:
    await household.start("web", "sh", "-c", "read a; echo got $a; exit 3", has_stdin=True, closes_stdin=True)
    code, out, err = await household.kubectl("attach", "-i", "web", stdin=b"said\n")
    assert (code, out) == (0, "got said\n"), err


async def test_run_shows_what_was_written_before_and_after_it_joins(household: Household) -> None:
    overrides = '{"spec": {"nodeName": "node-a", "automountServiceAccountToken": false}}'
    arguments = ["run", "-i", "--rm", "--restart=Never", "--image=none", f"--overrides={overrides}", "one"]
    process = await household.kubectl.start(*arguments, "--", "sh")

    async def is_there() -> bool:
        return (await household.cluster.call("GET", "/api/v1/namespaces/default/pods/one"))[0] == 200

    await until(is_there)
    script = "echo early; cat"
    await household.start("one", "sh", "-c", script, says=b"early", has_stdin=True, closes_stdin=True)
    reading = asyncio.create_task(process.communicate(b"typed\n"))
    await household.end_of("one")
    await household.tell("one", phase="Succeeded")
    async with asyncio.timeout(20):
        out, err = await reading
    assert (process.returncode, out) == (0, b'early\ntyped\npod "one" deleted from default namespace\n'), err
