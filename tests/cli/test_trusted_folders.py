"""Which folders are trusted with credentials: those that nobody else could have filled or put in place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.cli import trusted_folders
from shoal.cli.trusted_folders import problem_with
from tests.support.programs.ordinary_user import USER, is_root

as_root = pytest.mark.skipif(not is_root(), reason="gives folders to another user")


def a_folder(place: Path, mode: int = 0o700) -> Path:
    place.mkdir(parents=True)
    place.chmod(mode)
    return place


def problem(path: Path, **environ: str) -> str | None:
    return problem_with(path, user=os.geteuid(), environ=environ)


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755], ids=oct)
def test_a_folder_that_only_its_owner_can_write_is_trusted(tmp_path: Path, mode: int) -> None:
    assert problem(a_folder(tmp_path / "data", mode)) is None


def test_a_folder_that_is_not_there_yet_is_trusted(tmp_path: Path) -> None:
    assert problem(tmp_path / "not" / "yet") is None


@pytest.mark.parametrize(
    ("mode", "by"), [(0o770, "its group"), (0o720, "its group"), (0o777, "everybody"), (0o1777, "everybody")]
)
def test_a_folder_that_others_can_write_is_refused_with_the_way_to_mend_it(tmp_path: Path, mode: int, by: str) -> None:
    data = a_folder(tmp_path / "data", mode)
    assert problem(data) == (
        f"the data dir {data} is writable by {by}: run `chmod go-w {data}`, or choose another --data-dir"
    )
    data.chmod(mode & ~0o022)
    assert problem(data) is None


@as_root
def test_a_folder_of_another_user_is_refused_also_for_root(tmp_path: Path) -> None:
    data = a_folder(tmp_path / "data")
    os.chown(data, USER, USER)
    said = problem(data)
    assert said is not None
    assert said.startswith(f"the data dir {data} belongs to ")
    assert said.endswith(f"(uid {USER}): choose another --data-dir")


@as_root
def test_a_folder_of_root_is_trusted_by_everybody(tmp_path: Path) -> None:
    assert problem_with(a_folder(tmp_path / "data", 0o755), user=USER, environ={}) is None


def test_above_it_a_folder_that_everybody_can_write_is_refused_unless_it_is_sticky(tmp_path: Path) -> None:
    shared = a_folder(tmp_path / "shared", 0o777)
    data = a_folder(shared / "data")
    assert problem(data) == (
        f"{shared}, on the way to the data dir {data}, is writable by everybody: "
        f"run `chmod go-w {shared}`, or choose another --data-dir"
    )
    shared.chmod(0o1777)
    assert problem(data) is None


def test_above_it_a_folder_that_a_group_can_write_is_refused_unless_the_group_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = a_folder(tmp_path / "project", 0o775)
    data = a_folder(project / "data")
    monkeypatch.setattr(trusted_folders, "_is_private_group", lambda group, owner: False)
    assert "is writable by its group" in (problem(data) or "")
    monkeypatch.setattr(trusted_folders, "_is_private_group", lambda group, owner: True)
    assert problem(data) is None


@as_root
def test_above_it_a_folder_of_another_user_is_refused_unless_that_user_ran_sudo(tmp_path: Path) -> None:
    home = a_folder(tmp_path / "home", 0o755)
    data = a_folder(home / "data")
    os.chown(home, USER, USER)
    assert f"{home}, on the way to the data dir {data}, belongs to " in (problem(data) or "")
    assert problem(data, SUDO_UID=str(USER)) is None
    os.chown(data, USER, USER)
    assert "belongs to" in (problem(data, SUDO_UID=str(USER)) or ""), "what root believes in belongs to root"


def test_a_link_is_followed_and_what_it_leads_through_is_looked_at(tmp_path: Path) -> None:
    shared = a_folder(tmp_path / "shared", 0o777)
    target = a_folder(tmp_path / "private" / "data")
    (tmp_path / "link").symlink_to("private/data")
    (shared / "link").symlink_to(target)
    (tmp_path / "through").symlink_to(shared / "link")
    assert problem(tmp_path / "link") is None
    assert f"{shared}, on the way to the data dir" in (problem(tmp_path / "through") or "")
    target.chmod(0o770)
    assert (problem(tmp_path / "link") or "").startswith(f"the data dir {target} is writable by its group")


@as_root
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    shared = a_folder(tmp_path / "shared", 0o1777)
    link = shared / "link"
    link.symlink_to(a_folder(tmp_path / "data"))
    os.lchown(link, USER, USER)
    assert f"{link}, on the way to the data dir {link}, belongs to" in (problem(link) or "")


def test_links_in_a_circle_are_not_followed_for_ever(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert problem(tmp_path / "a") is None
