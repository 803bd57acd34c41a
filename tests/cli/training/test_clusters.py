"""Which cluster a question is about."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError
from shoal.cli.training.clusters import Place


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """A folder in which Shoal runs."""
    folder = tmp_path / "running"
    with DataDir(folder).held(os.getpid()):
        yield folder


@pytest.mark.parametrize(
    ("place", "environ", "file"),
    [
        (Place(None, None, None), {}, "running/kubeconfig"),
        (Place(None, None, None), {"KUBECONFIG": ""}, "running/kubeconfig"),
        (Place(None, None, None), {"KUBECONFIG": "/prod"}, None),
        (Place(None, "prod", None), {}, None),
        (Place(Path("/mine"), None, None), {"KUBECONFIG": "/prod"}, "/mine"),
    ],
    ids=["the one that runs here", "as if unset", "KUBECONFIG", "a context", "a file"],
)
def test_what_was_said_wins_over_what_runs_here(
    place: Place, environ: Mapping[str, str], file: str | None, running: Path
) -> None:
    expected = None if file is None else running.parent / file
    assert place.file(environ, usual=running) == expected


def test_a_data_dir_that_is_named_wins_over_the_environment(running: Path, tmp_path: Path) -> None:
    named = Place(None, None, running)
    assert named.file({"KUBECONFIG": "/prod"}, usual=tmp_path / "none") == running / "kubeconfig"


def test_where_no_shoal_runs_the_usual_kubeconfig_is_meant(tmp_path: Path) -> None:
    assert Place(None, None, None).file({}, usual=tmp_path / "none") is None


def test_a_data_dir_that_is_named_and_where_nothing_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no Shoal runs in .*/none: start it with `shoal up --data-dir .*/none`"):
        Place(None, None, tmp_path / "none").file({})


def test_two_clusters_are_refused(running: Path) -> None:
    with pytest.raises(CommandError, match="leave one out"):
        Place(Path("/mine"), None, running).file({})
