"""What is told of pods that the server refused."""

from __future__ import annotations

import pytest

from shoal.gangs.cliques.pod_writes import Failures, words
from shoal.kube.errors import Cause, Status, StatusDetails, error_from_status


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            Status(
                code=422,
                reason="Invalid",
                message='Pod "web-0-a-x7k2p" is invalid: spec.containers: Required value',
                details=StatusDetails(
                    name="web-0-a-x7k2p", causes=[Cause(field="spec.containers", message="Required value")]
                ),
            ),
            "spec.containers: Required value",
            id="a refused field",
        ),
        pytest.param(
            Status(
                code=403,
                reason="Forbidden",
                message='pods "web-0-a-x7k2p" is forbidden: exceeded quota: small',
                details=StatusDetails(name="web-0-a-x7k2p"),
            ),
            "pods is forbidden: exceeded quota: small",
            id="a quota",
        ),
    ],
)
def test_equal_errors_read_equal_whatever_name_the_pod_was_given(status: Status, expected: str) -> None:
    assert words(error_from_status(status)) == expected


def test_what_happened_to_several_pods_is_told_once() -> None:
    failures = Failures()
    for _ in range(3):
        failures.add("ERR_CREATE_POD", "no room", RuntimeError())
    failures.add("ERR_CREATE_POD", "no disk", RuntimeError())
    assert [told.description for told in failures.told] == ["no room", "no disk"]
    assert len(failures.to_retry) == 4


def test_what_passes_with_an_event_is_told_and_not_tried_again() -> None:
    failures = Failures()
    failures.add("ERR_SYNC_RESOURCE_CLAIM", "no template", RuntimeError(), is_awaited=True)
    assert failures
    assert failures.to_retry == []
