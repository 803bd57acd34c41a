"""The example of a policy: it changes where pods go, an entry point and a line of configuration are all it needs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from shoal.api.kai_scheduler import SchedulingShard
from shoal.scheduler.configuration import (
    configuration_of,
    engine_setup,
    parse_arguments,
    read_configuration,
    shard_configuration,
)
from shoal.scheduler.plugins import installed_names, load_plugins
from tests.scheduler.session.worlds import World

EXAMPLE = Path(__file__).parents[2] / "examples" / "scheduler_plugin.py"
DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduler-plugins.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example as a package that somebody installed."""
    facts = tmp_path / "near_data-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: near-data\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[shoal.scheduler.plugins]\nneardata = examples.scheduler_plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def blocks(language: str) -> list[str]:
    return [block.split("```")[0] for block in DOCUMENT.read_text().split(f"```{language}\n")[1:]]


@pytest.mark.usefixtures("installed")
def test_the_documents_configuration_file_puts_pods_where_their_data_is() -> None:
    [text] = [block for block in blocks("yaml") if block.startswith("tiers:")]
    read = read_configuration(text, source="config.yaml", third_party=installed_names())
    setup = engine_setup(read, parse_arguments([]))
    assert setup.remarks == ()
    label = next(one.arguments["label"] for one in setup.plugins if one.name == "neardata")
    world = World({"a": 8, "b": 8, "c": 8}, labels={"b": {label: "imagenet"}})
    world.job("plain", gpus=2)
    world.job("near", gpus=2, labels={label: "imagenet"})
    assert world.placed(setup.settings) == {"plain-0": "a", "near-0": "a"}
    assert world.placed(setup.settings, plugins=load_plugins(setup.plugins)) == {"plain-0": "a", "near-0": "b"}


def test_the_document_shows_the_example_as_it_is() -> None:
    source = {line.strip() for line in EXAMPLE.read_text().splitlines()}
    shown = next(block for block in blocks("python") if "def score" in block)
    assert [line for line in shown.splitlines() if line.strip() not in source] == []
    assert len([line for line in shown.splitlines() if line.strip()]) <= 12


@pytest.mark.usefixtures("installed")
def test_every_other_file_of_the_document_is_read_without_a_remark() -> None:
    for text in blocks("yaml"):
        if "kind: SchedulingShard" in text:
            document = shard_configuration(msgspec.yaml.decode(text, type=SchedulingShard))
            read = configuration_of(document, source="shard", third_party=installed_names())
            assert [one.name for one in read.plugins][-2:] == ["neardata", "gpusharingorder"]
        else:
            read = read_configuration(text, source="config.yaml", third_party=installed_names())
        assert engine_setup(read, parse_arguments([])).remarks == ()
