from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cluster.node.process.contents.machine_files import usual_files, with_links, without_parts


def test_of_etc_only_what_programs_need_is_shown() -> None:
    names = ["passwd", "shadow", "shadow-", "ssl", "ssh", "python3", "python3.11", "sudoers", "kubernetes", "java-17"]
    found = [path for path in usual_files(names) if path.startswith("/etc/")]
    assert set(found) == {
        *("/etc/passwd", "/etc/python3", "/etc/python3.11", "/etc/java-17"),
        *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf"),
        *("/etc/ssh/moduli", "/etc/ssh/ssh_config", "/etc/ssh/ssh_config.d"),
    }


def test_the_links_to_a_file_are_named_with_it(tmp_path: Path) -> None:
    for name in ("env", "tools", "real-1"):
        (tmp_path / name).mkdir()
    (tmp_path / "real-1" / "python3.11").touch()
    (tmp_path / "real").symlink_to("real-1")
    (tmp_path / "tools" / "python3").symlink_to("../real/python3.11")
    (tmp_path / "env" / "python").symlink_to(tmp_path / "tools" / "python3")
    found = with_links(str(tmp_path / "env" / "python"))
    expected = ["env/python", "tools/python3", "real", "real-1/python3.11"]
    assert found == [str(tmp_path / name) for name in expected]
    assert with_links(str(tmp_path / "env/../tools")) == [str(tmp_path / "tools")]


def test_links_in_a_circle_show_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert with_links(str(tmp_path / "a" / "x")) == []


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/usr/lib/x", "/usr", "/usr"], ["/usr"]),
        (["/usr-x", "/usr"], ["/usr", "/usr-x"]),
        (["/a/b/c", "/d", "/a/b"], ["/d", "/a/b"]),
    ],
)
def test_what_a_folder_holds_is_not_named_again(paths: list[str], expected: list[str]) -> None:
    assert without_parts(paths) == expected
