"""When patches were made, as admission fills it in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.training.admission import with_patch_times
from tests.training.builders import a_job_patch, a_patch

NOW = datetime(2026, 3, 1, 12, 0, 0, 999, tzinfo=UTC)
NOON, DAWN, DUSK = "2026-03-01T12:00:00Z", "2026-03-01T06:00:00Z", "2026-03-01T18:00:00Z"


def a_zone_patch(manager: str = "acme.io/a", zone: str = "a", time: str = "") -> dict[str, Any]:
    patch = a_patch(a_job_patch("node", nodeSelector={"zone": zone}), manager=manager)
    return {**patch, "time": time} if time else patch


def a_body(*patches: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "job"}, "spec": {"runtimeRef": {"name": "r"}, "runtimePatches": list(patches)}}


CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]] | None, list[str | None]]] = {
    "a new job": ([a_zone_patch()], None, [NOON]),
    "a new job that says a time": ([a_zone_patch(time=DAWN)], None, [DAWN]),
    "the same as before": ([a_zone_patch()], [a_zone_patch(time=DAWN)], [DAWN]),
    "the same as before with another time": ([a_zone_patch(time=DUSK)], [a_zone_patch(time=DAWN)], [DAWN]),
    "the same as before, which had no time": ([a_zone_patch(time=DUSK)], [a_zone_patch()], [None]),
    "changed": ([a_zone_patch(zone="b")], [a_zone_patch(time=DAWN)], [NOON]),
    "changed, with a time": ([a_zone_patch(zone="b", time=DUSK)], [a_zone_patch(time=DAWN)], [NOON]),
    "of a new manager": ([a_zone_patch("acme.io/b")], [a_zone_patch(time=DAWN)], [NOON]),
    "of a new manager, with a time": ([a_zone_patch("acme.io/b", time=DUSK)], [a_zone_patch(time=DAWN)], [DUSK]),
    "in another order": (
        [a_zone_patch("acme.io/b"), a_zone_patch("acme.io/a")],
        [a_zone_patch("acme.io/a", time=DAWN), a_zone_patch("acme.io/b", time=DUSK)],
        [DUSK, DAWN],
    ),
}


@pytest.mark.parametrize(("new", "old", "expected"), CASES.values(), ids=CASES.keys())
def test_a_patch_gets_its_time(
    new: list[dict[str, Any]], old: list[dict[str, Any]] | None, expected: list[str | None]
) -> None:
    timed = with_patch_times(a_body(*new), None if old is None else a_body(*old), NOW)
    patches = timed["spec"]["runtimePatches"]
    assert [patch.get("time") for patch in patches] == expected
    assert [{**patch, "time": ""} for patch in patches] == [{**patch, "time": ""} for patch in new]


def test_a_job_without_patches_stays_as_it_is() -> None:
    bodies: list[dict[str, Any]] = [{"metadata": {}}, {"metadata": {}, "spec": {"runtimeRef": {"name": "r"}}}]
    for body in bodies:
        assert with_patch_times(body, None, NOW) == body
