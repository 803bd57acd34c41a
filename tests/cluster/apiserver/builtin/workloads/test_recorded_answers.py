"""Every case against what a real API server answered to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.apiserver.builtin.workloads.cases import CASES
from tests.cluster.apiserver.builtin.workloads.objects import Kind, changed
from tests.cluster.apiserver.builtin.workloads.recording import RECORDED
from tests.cluster.apiserver.builtin.workloads.server import KINDS, causes_of, created, settled

_ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())


@pytest.mark.parametrize(("name", "kind", "changes"), CASES, ids=[case[0] for case in CASES])
def test_a_case_gets_the_recorded_answer(name: str, kind: Kind, changes: dict[str, Any]) -> None:
    answer = _ANSWERS[name]
    made, problems, warnings = created(KINDS[kind], changed(kind, changes), "any")
    if answer["status"] == 201:
        assert not [str(each) for each in problems]
        assert settled(made) == answer["object"]
        assert sorted(warnings) == answer.get("warnings", [])
    else:
        assert sorted(causes_of(KINDS[kind], "it", problems)) == [tuple(each) for each in answer["causes"]]


def test_every_case_is_recorded_once() -> None:
    assert sorted(_ANSWERS) == sorted({case[0] for case in CASES})
    assert len(_ANSWERS) == len(CASES)
