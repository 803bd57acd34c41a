from __future__ import annotations

import re
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.logs import LONGEST_TEXT, ContainerLog
from tests.support.node.runtime_program import in_a_process

OUT, ERR = b"stdout", b"stderr"


def entries(path: Path) -> list[tuple[str, str, str]]:
    """Streams, tags and texts."""
    found = []
    *lines, end = path.read_bytes().decode().split("\n")
    assert end == ""
    for line in lines:
        time, stream, tag, text = line.split(" ", 3)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", time)
        found.append((stream, tag, text))
    return found


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([b"one\n"], [("F", "one")], id="a line"),
        pytest.param([b"one\ntwo\n"], [("F", "one"), ("F", "two")], id="lines at once"),
        pytest.param([b"\n\n"], [("F", ""), ("F", "")], id="empty lines"),
        pytest.param([b"one\ntw", b"o\n"], [("F", "one"), ("F", "two")], id="a line in two parts"),
        pytest.param([b"$ "], [("P", "$ ")], id="a prompt"),
        pytest.param([b"x\r\n"], [("F", "x\r")], id="a terminal's line"),
        pytest.param([b"a b  c\n"], [("F", "a b  c")], id="blanks"),
        pytest.param([b"x" * LONGEST_TEXT + b"\n"], [("F", "x" * LONGEST_TEXT)], id="the longest line"),
        pytest.param(
            [b"x" * LONGEST_TEXT + b"y\n"], [("P", "x" * LONGEST_TEXT), ("F", "y")], id="a longer line is cut"
        ),
        pytest.param(
            [b"a\n" + b"x" * 2 * LONGEST_TEXT + b"\nb\n"],
            [("F", "a"), ("P", "x" * LONGEST_TEXT), ("F", "x" * LONGEST_TEXT), ("F", "b")],
            id="a long line among short ones",
        ),
        pytest.param(
            [b"x" * LONGEST_TEXT, b"y" * LONGEST_TEXT, b"z\n"],
            [("P", "x" * LONGEST_TEXT), ("P", "y" * LONGEST_TEXT), ("F", "z")],
            id="a long line that is never whole in memory",
        ),
    ],
)
def test_output_is_logged_as_container_runtimes_do(
    chunks: list[bytes], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    log = ContainerLog(tmp_path / "0.log")
    for chunk in chunks:
        log.add(OUT, chunk)
    log.settle(OUT)
    assert entries(tmp_path / "0.log") == [("stdout", *entry) for entry in expected]


def test_a_line_that_is_written_in_pieces_is_not_torn_by_the_other_stream(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log", patience=3600)
    log.add(ERR, b"ls: ")
    log.settle_due()
    log.add(OUT, b"yes\n")
    log.add(ERR, b"cannot access /x\n")
    assert entries(tmp_path / "0.log") == [("stdout", "F", "yes"), ("stderr", "F", "ls: cannot access /x")]
    assert log.rest is None


def test_a_prompt_is_written_after_a_while_though_more_of_it_comes_and_the_other_stream_talks(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log", patience=0.05)
    log.add(OUT, b"name")
    while (rest := log.rest) is not None and rest > 0:
        log.add(OUT, b".")
        log.add(ERR, b"still here\n")
    log.settle_due()
    told = [text for stream, _, text in entries(tmp_path / "0.log") if stream == "stdout"]
    assert (len(told), told[0].strip(".")) == (1, "name")


def test_streams_do_not_finish_each_others_lines(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log")
    log.add(OUT, b"question? ")
    log.settle(OUT)
    log.add(ERR, b"warning\n")
    log.add(OUT, b"yes\n")
    assert entries(tmp_path / "0.log") == [
        ("stdout", "P", "question? "),
        ("stderr", "F", "warning"),
        ("stdout", "F", "yes"),
    ]


def test_a_chatty_program_fills_a_bounded_number_of_bounded_files(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = ContainerLog(path, largest_file=10_000, most_files=3)
    for number in range(2_000):
        log.add(OUT, b"%d\n" % number)
    files = [path, tmp_path / "0.log.1", tmp_path / "0.log.2"]
    assert sorted(tmp_path.iterdir()) == files
    assert all(file.stat().st_size <= 11_000 for file in files)
    texts = [int(text) for file in reversed(files) for _, _, text in entries(file)]
    assert texts == list(range(texts[0], 2_000))


def as_if_the_disk_had(size: int, action: Callable[[], None]) -> None:
    def act() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        action()

    in_a_process(act)


def test_a_full_disk_loses_output_but_no_entry_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "0.log"

    def act() -> None:
        log = ContainerLog(path)
        for _ in range(100):
            log.add(OUT, b"x" * 100 + b"\n")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        log.add(OUT, b"space again\n")

    as_if_the_disk_had(1_000, act)
    found = entries(path)
    assert [text for _, _, text in found] == ["x" * 100] * (len(found) - 1) + ["space again"]


def test_a_log_whose_folder_was_removed_goes_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = ContainerLog(folder / "0.log", largest_file=100)
    (folder / "0.log").unlink()
    folder.rmdir()
    for _ in range(10):
        log.add(OUT, b"x" * 100 + b"\n")
    assert not folder.exists()


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    (tmp_path / "0.log").symlink_to("precious")
    ContainerLog(tmp_path / "0.log").add(OUT, b"x\n")
    assert (tmp_path / "precious").read_text() == ""
