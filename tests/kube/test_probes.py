"""The ports of a process."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from shoal.kube.probes import serving


async def test_a_socket_is_its_owners_alone_wherever_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "a:b" / "control.sock"
    path.parent.mkdir()
    for _ in range(2):  # also where one was left behind
        async with serving([], f"unix:{path}") as port:
            assert port == 0
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert b"404" in await reader.readline()
            writer.close()
            await writer.wait_closed()


async def test_what_others_make_while_a_socket_is_opened_has_its_usual_rights(tmp_path: Path) -> None:
    def make_folders() -> None:
        for number in range(200):
            (tmp_path / f"{number}").mkdir()

    asyncio.get_running_loop().call_soon(make_folders)
    async with serving([], f"unix:{tmp_path / 'control.sock'}"):
        pass
    umask = os.umask(0o022)
    os.umask(umask)
    usual = 0o777 & ~umask
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_dir()} == {usual}
