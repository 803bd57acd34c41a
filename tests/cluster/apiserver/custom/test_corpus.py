"""The definitions of the projects that we are compatible with, and the objects in their samples."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from shoal.cluster.apiserver.custom import default_definition, kinds_of, validate_definition
from shoal.cluster.apiserver.kinds.kind import Kind
from tests.support.schemas.corpus import CORPUS, needs_corpus, upstream_samples

pytestmark = needs_corpus

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FILES = sorted(CORPUS.glob("*/crds/*.yaml"))
PROJECTS = sorted({file.parts[-3] for file in FILES})


def load(file: Any) -> dict[str, Any]:
    value: dict[str, Any] = yaml.load(file.read_text(), Loader=_LOADER)
    default_definition(value)
    return value


@pytest.fixture(scope="module")
def kinds() -> dict[tuple[str, str], Kind]:
    return {(kind.api_version, kind.kind): kind for file in FILES for kind in kinds_of(load(file))}


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_every_definition_is_right_and_makes_its_kinds(file: Any) -> None:
    value = load(file)
    assert [str(each) for each in validate_definition(value)] == []
    assert [kind.version for kind in kinds_of(value)] == [version["name"] for version in value["spec"]["versions"]]


# What the samples of a project leave out, since its webhooks fill it in; the real server refuses them as well.
REFUSED = {
    "grove": {"spec.template.cliques[0].spec.roleName: Required value"},
    "jobset": {f"spec.failurePolicy.rules[{at}].name: Required value" for at in range(2)},
}


@pytest.mark.parametrize("project", PROJECTS)
def test_samples_are_accepted(project: str, kinds: dict[tuple[str, str], Kind]) -> None:
    told: set[str] = set()
    for _, sample in upstream_samples(project):
        kind = kinds.get((sample["apiVersion"], sample["kind"]))
        if kind is None:
            continue
        assert kind.read is not None
        unknown: list[str] = []
        problems = kind.rules.validate_create(kind.read(copy.deepcopy(sample), unknown))
        told |= {str(each) for each in problems if each.path != "<nil>"}
        assert unknown == []
    assert told == REFUSED.get(project, set())
