"""``shoal version`` in each of its forms."""

from __future__ import annotations

import json
import platform

import yaml

from shoal import __version__
from tests.support.programs.command import shoal


def test_machines_read_what_people_read() -> None:
    as_json = json.loads(shoal("version", "-o", "json").stdout)
    as_yaml = yaml.safe_load(shoal("version", "-o", "yaml").stdout)
    as_table = dict(line.split(maxsplit=1) for line in shoal("version").stdout.splitlines())
    assert as_json == as_yaml == as_table
    assert as_json.keys() == {"version", "python", "platform"}
    assert (as_json["version"], as_json["python"]) == (__version__, platform.python_version())
