"""What a configuration file says of zones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.scheduler.configuration import (
    EngineSetup,
    configuration_of,
    engine_setup,
    parse_arguments,
    read_configuration,
)
from shoal.scheduler.numa import NumaSettings


def a_setup(**arguments: Any) -> EngineSetup:
    plugins = [{"name": "predicates"}, {"name": "numa", "arguments": arguments}]
    document = {"tiers": [{"plugins": plugins}]}
    return engine_setup(configuration_of(document, source="conf.yaml"), parse_arguments(()))


def test_nobody_looks_at_zones_unless_a_file_asks_for_it() -> None:
    assert engine_setup(configuration_of({}, source="conf.yaml"), parse_arguments(())).settings.numa is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({}, NumaSettings(), id="nothing said"),
        pytest.param({"ignoreList": ""}, NumaSettings(), id="nothing to ignore"),
        pytest.param({"ignoreList": " memory , x.io/nic,,"}, {"memory", "x.io/nic"}, id="two to ignore"),
        pytest.param({"reconstructAvailable": "false"}, NumaSettings(reconstructs=False), id="by the node's word"),
        pytest.param({"reconstructAvailable": False}, NumaSettings(reconstructs=False), id="without quotes"),
        pytest.param({"reconstructAvailable": "1"}, NumaSettings(), id="counted"),
    ],
)
def test_arguments_are_followed(arguments: dict[str, Any], expected: NumaSettings | set[str]) -> None:
    found = a_setup(**arguments)
    wanted = NumaSettings(ignored=frozenset(expected)) if isinstance(expected, set) else expected
    assert (found.settings.numa, found.remarks) == (wanted, ())


@pytest.mark.parametrize("arguments", [{"reconstructAvailable": "perhaps"}, {"ignoreLists": "cpu"}])
def test_an_argument_that_cannot_be_followed_is_told(arguments: dict[str, str]) -> None:
    found = a_setup(**arguments)
    assert found.settings.numa == NumaSettings()
    [remark] = found.remarks
    assert remark.startswith(f'conf.yaml: argument {next(iter(arguments))} of plugin "numa" ')


def test_the_documents_file_asks_for_it() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scheduler-plugins.md").read_text()
    [block] = [one.split("```")[0] for one in text.split("```yaml\n")[1:] if "name: numa" in one.split("```")[0]]
    setup = engine_setup(read_configuration(block, source="config.yaml"), parse_arguments(()))
    assert setup.settings.numa == NumaSettings(ignored=frozenset({"memory", "hugepages-2Mi"}))
