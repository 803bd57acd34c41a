"""Every case of this folder, and of the corpus where it is there, run by the scheduler itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from shoal.scheduler.scenarios import (
    DivisionCase,
    Scenario,
    UnreadableCaseError,
    read,
    verdict_of_division,
    verdict_of_scenario,
)
from shoal.scheduler.scenarios.comparing import overloaded_devices, unmatched_expectations
from shoal.scheduler.scenarios.engine import run

_HERE: Final = Path(__file__).parent
_CORPUS: Final = _HERE.parents[3] / "shared" / "corpus" / "kai"
_AREAS: Final = frozenset(
    {
        "affinity",
        "consolidation",
        "cycles",
        "fractions",
        "gangs",
        "gpu-memory",
        "mig",
        "min-runtime",
        "multi-device",
        "order",
        "placement",
        "preempt",
        "preemption-delay",
        "quota",
        "reclaim",
        "staleness",
        "subgroups",
        "topology",
    }
)


def _cases(paths: list[Path]) -> list[Scenario | DivisionCase | UnreadableCaseError]:
    return [case for path in paths for case in read(path).cases]


_OURS: Final = _cases(sorted(_HERE.glob("*.yaml")))
_THEIRS: Final = _cases([path for path in (_CORPUS / "scenarios.yaml", _CORPUS / "fairshare.yaml") if path.exists()])


def _name(case: Scenario | DivisionCase | UnreadableCaseError) -> str:
    return case.case if isinstance(case, UnreadableCaseError) else case.id


@pytest.mark.parametrize("case", _OURS, ids=_name)
def test_our_cases(case: Scenario | DivisionCase | UnreadableCaseError) -> None:
    _is_as_expected(case)


_NO_CORPUS: Final = pytest.param(None, marks=pytest.mark.skip(reason="shared/corpus/kai is not there"), id="none")


@pytest.mark.parametrize("case", [pytest.param(case, id=_name(case)) for case in _THEIRS] or [_NO_CORPUS])
def test_the_cases_of_the_corpus(case: Scenario | DivisionCase | UnreadableCaseError) -> None:
    _is_as_expected(case)


def _is_as_expected(case: Scenario | DivisionCase | UnreadableCaseError) -> None:
    assert not isinstance(case, UnreadableCaseError), case
    verdict = verdict_of_scenario(case, run) if isinstance(case, Scenario) else verdict_of_division(case)
    assert verdict.is_passed, "\n".join([*verdict.differences, verdict.trace])


def test_our_cases_compare_all_that_they_expect() -> None:
    odd = {
        case.id: found
        for case in _OURS
        if isinstance(case, Scenario)
        for found in [unmatched_expectations(case) + [g for node in case.nodes for g in overloaded_devices(case, node)]]
        if found
    }

    assert odd == {}


def test_every_case_of_ours_has_its_own_name_and_cites_its_rule() -> None:
    names = Counter(_name(case) for case in _OURS)

    assert [name for name, count in names.items() if count > 1] == []
    assert [_name(case) for case in _OURS if not isinstance(case, UnreadableCaseError) and not case.rule] == []


def test_no_area_is_left_out() -> None:
    assert {case.area for case in _OURS if isinstance(case, Scenario)} == _AREAS
