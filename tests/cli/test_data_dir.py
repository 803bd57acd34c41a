"""The data dir's own rules, without a Shoal in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError


def test_what_images_stand_for_may_be_written_before_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text("default: forbidden\n")
    DataDir(tmp_path).make()
    assert (tmp_path / "images.yaml").read_text() == "default: forbidden\n"


def test_beside_other_things_it_makes_no_difference(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").touch()
    (tmp_path / "letter").touch()
    with pytest.raises(CommandError, match="holds other things"):
        DataDir(tmp_path).make()
