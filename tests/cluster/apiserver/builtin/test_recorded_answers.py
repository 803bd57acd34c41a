"""Our rules answer as a real API server answered, case by case."""

from __future__ import annotations

import pytest

from tests.cluster.apiserver.builtin.answers import all_cases, ours, recorded
from tests.cluster.apiserver.builtin.kind_cases import Case

RECORDED = recorded()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in all_cases()])
def test_an_object_is_taken_or_refused_as_kubernetes_does(case: Case) -> None:
    assert ours(case) == RECORDED[case.id]


def test_every_case_has_been_recorded_once() -> None:
    assert [case.id for case in all_cases()] == list(RECORDED)
