"""``usageDBConfig`` and ``--metrics-namespace``, from the command line to the scheduler's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.exits import CommandError
from shoal.cli.scheduling.assembling import read_setup, remembering
from shoal.scheduler.shares.usage.windows import Sliding

CONFIG = """
usageDBConfig:
  clientType: builtin
  connectionString: {directory}
  usageParams: {{windowSize: 2h}}
"""


def test_the_past_that_counts_is_read_from_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(directory=tmp_path / "usage"))
    usage = read_setup([f"--scheduler-conf={file}"], host="127.0.0.1").usage
    assert usage is not None
    assert (usage.directory, usage.window) == (tmp_path / "usage", Sliding(7200.0))


def test_by_default_no_past_counts() -> None:
    assert read_setup([], host="127.0.0.1").usage is None


def test_a_past_that_cannot_be_meant_is_refused_with_its_file_and_field(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(directory="usage"))
    with pytest.raises(CommandError, match=r"config\.yaml: usageDBConfig: connectionString 'usage' is no directory"):
        read_setup([f"--scheduler-conf={file}"], host="127.0.0.1")


def test_what_is_remembered_outlives_a_start_where_there_is_a_place_for_it(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("usageDBConfig: {clientType: builtin}")
    setup = read_setup([f"--scheduler-conf={file}"], host="127.0.0.1")
    kept = remembering(setup, tmp_path / "usage").usage
    assert kept is not None
    assert kept.directory == tmp_path / "usage"
    assert remembering(read_setup([], host="127.0.0.1"), tmp_path).usage is None
    file.write_text(CONFIG.format(directory=tmp_path / "named"))
    named = remembering(read_setup([f"--scheduler-conf={file}"], host="127.0.0.1"), tmp_path / "usage").usage
    assert named is not None
    assert named.directory == tmp_path / "named"
