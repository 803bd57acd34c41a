"""The generated definitions of KAI's kinds say what upstream's say, fact by fact, but for what is listed here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api import kai_scheduler, scheduling_run_ai
from shoal.api.crd import CustomResource
from tests.support.schemas.corpus import needs_corpus, upstream_definition, upstream_samples
from tests.support.schemas.crd_diff import Intended, differences, unexplained

DEFINITIONS = (*kai_scheduler.DEFINITIONS, *scheduling_run_ai.DEFINITIONS)
HOSTNAME = "'kubernetes.io/hostname'"
LEVELS = "v1alpha1.spec.levels"
SAME_RULE = "the same rule in an expression of our own"

INTENDED: dict[str, list[Intended]] = {
    "topologies.kai.scheduler": [
        Intended(LEVELS, f"rule {text}", SAME_RULE)
        for text in (
            "self.map(l, l.nodeLabel) == oldSelf.map(l, l.nodeLabel)",
            "self.map(level, level.nodeLabel) == oldSelf.map(level, level.nodeLabel)",
            "size(self.filter(i, size(self.filter(j, j.nodeLabel == i.nodeLabel)) > 1)) == 0",
            "self.all(level, self.exists_one(other, other.nodeLabel == level.nodeLabel))",
            f"size(self.filter(i, i.nodeLabel == {HOSTNAME})) == 0 || self[size(self) - 1].nodeLabel == {HOSTNAME}",
            f"!self.exists(level, level.nodeLabel == {HOSTNAME}) || self[size(self) - 1].nodeLabel == {HOSTNAME}",
        )
    ],
}

each_definition = pytest.mark.parametrize("definition", [pytest.param(each, id=each.name) for each in DEFINITIONS])


@needs_corpus
@each_definition
def test_a_kind_of_kai_differs_from_upstream_only_where_it_is_meant_to(definition: CustomResource) -> None:
    found = differences(definition.manifest(), upstream_definition("kai", definition.name))
    assert unexplained(found, INTENDED.get(definition.name, [])) == []


def test_the_table_of_differences_names_known_kinds_only() -> None:
    assert INTENDED.keys() <= {definition.name for definition in DEFINITIONS}


def samples() -> list[Any]:
    kinds = {(definition.resource.api_version, definition.kind): definition for definition in DEFINITIONS}
    return [
        pytest.param(kinds[key], sample, id=name)
        for name, sample in upstream_samples("kai")
        if (key := (sample["apiVersion"], sample["kind"])) in kinds
    ]


@needs_corpus
@pytest.mark.parametrize(("definition", "sample"), samples())
def test_a_sample_is_read_and_written_back_as_it_was(definition: CustomResource, sample: dict[str, Any]) -> None:
    decoded = definition.resource.decode(msgspec.json.encode(sample))
    assert msgspec.json.decode(msgspec.json.encode(decoded)) == sample


@needs_corpus
def test_there_are_samples() -> None:
    assert len(samples()) >= 9
