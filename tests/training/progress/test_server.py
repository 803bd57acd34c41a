"""Reports of training programs: who may make them, what they may say, and where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.trainer import TRAIN_JOBS
from shoal.training.plugins.train_job_status import report_path
from shoal.training.progress.reports import LIMIT
from tests.training.progress.conftest import Reporter

NOW = "2026-01-31T09:30:00Z"
REPORT = {
    "trainerStatus": {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 90,
        "metrics": [{"name": "loss", "value": "0.25"}],
        "lastUpdatedTime": NOW,
    }
}


async def test_a_report_is_written_and_said_back(reporter: Reporter) -> None:
    assert await reporter.post(REPORT) == (200, REPORT)
    assert await reporter.status() == REPORT


async def test_a_report_takes_the_place_of_the_one_before(reporter: Reporter) -> None:
    await reporter.post(REPORT)
    later: dict[str, Any] = {"trainerStatus": {"progressPercentage": 50, "lastUpdatedTime": NOW}}
    assert await reporter.post(later) == (200, later)
    assert await reporter.status() == later


async def test_what_the_controller_says_stays(reporter: Reporter) -> None:
    await reporter.cluster.set_status(TRAIN_JOBS, "demo", {"startTime": NOW})
    await reporter.post(REPORT)
    assert await reporter.status() == {"startTime": NOW, **REPORT}


async def test_a_report_that_says_nothing_writes_nothing(reporter: Reporter) -> None:
    assert await reporter.post({"progressPercentage": 5}) == (200, {})
    assert await reporter.status() == {}


async def test_the_answer_leaves_out_what_was_not_taken(reporter: Reporter) -> None:
    newer = {"trainerStatus": {**REPORT["trainerStatus"], "phase": "warm-up"}}
    assert await reporter.post(newer) == (200, REPORT)
    assert await reporter.status() == REPORT


async def test_the_scheme_may_be_written_in_any_case(reporter: Reporter) -> None:
    code, _ = await reporter.post(REPORT, scheme="bEaReR")
    assert code == 200


class TestRefusals:
    async def refused(self, reporter: Reporter, code: int, reason: str, message: str, body: Any, **how: Any) -> None:
        status, answer = await reporter.post(body, **how)
        assert (status, answer["code"], answer["reason"]) == (code, code, reason)
        assert (answer["kind"], answer["status"]) == ("Status", "Failure")
        assert message in answer["message"]
        assert await reporter.status() == {}

    async def test_without_a_token(self, reporter: Reporter) -> None:
        await self.refused(reporter, 403, "Forbidden", "Forbidden", REPORT, token="")

    async def test_another_scheme(self, reporter: Reporter) -> None:
        await self.refused(reporter, 403, "Forbidden", "Forbidden", REPORT, scheme="Basic")

    async def test_a_token_that_is_none(self, reporter: Reporter) -> None:
        await self.refused(reporter, 403, "Forbidden", "Forbidden", REPORT, token="made.up.token")

    async def test_a_token_for_another_train_job(self, reporter: Reporter) -> None:
        token = await reporter.token(of="other")
        await self.refused(reporter, 403, "Forbidden", "Forbidden", REPORT, token=token)

    async def test_a_token_for_the_api_server(self, reporter: Reporter) -> None:
        token = await reporter.token(audiences=["https://kubernetes.default.svc"])
        await self.refused(reporter, 403, "Forbidden", "Forbidden", REPORT, token=token)

    async def test_a_token_of_another_namespace(self, reporter: Reporter) -> None:
        token = await reporter.token(namespace="other")
        await self.refused(reporter, 403, "Forbidden", "Forbidden", REPORT, token=token)

    @pytest.mark.parametrize("body", [b"{", b"[1]", b'"text"', b'{"trainerStatus": 3}', b"[" * 5000])
    async def test_what_is_no_report(self, reporter: Reporter, body: bytes) -> None:
        await self.refused(reporter, 422, "Invalid", "Invalid payload", body)

    async def test_what_breaks_the_schema(self, reporter: Reporter) -> None:
        body = {"trainerStatus": {"progressPercentage": 101, "lastUpdatedTime": NOW}}
        await self.refused(reporter, 422, "Invalid", "progressPercentage", body)

    async def test_a_figure_that_is_a_number(self, reporter: Reporter) -> None:
        body = {"trainerStatus": {"metrics": [{"name": "loss", "value": 0.25}], "lastUpdatedTime": NOW}}
        await self.refused(reporter, 422, "Invalid", "trainerStatus.metrics[0].value", body)

    async def test_a_field_that_is_none(self, reporter: Reporter) -> None:
        body = {"trainerStatus": {"progress": 1, "lastUpdatedTime": NOW}}
        await self.refused(reporter, 422, "Invalid", "trainerStatus.progress: ", body)

    @pytest.mark.parametrize("seconds", [2**31, 2**70])
    async def test_what_is_too_far_away(self, reporter: Reporter, seconds: int) -> None:
        body = {"trainerStatus": {"estimatedRemainingSeconds": seconds, "lastUpdatedTime": NOW}}
        await self.refused(reporter, 422, "Invalid", "estimatedRemainingSeconds", body)

    async def test_what_breaks_a_rule(self, reporter: Reporter) -> None:
        body = {"trainerStatus": {"progressPercentage": 1}}
        await self.refused(reporter, 422, "Invalid", "lastUpdatedTime is required", body)

    async def test_what_is_too_long(self, reporter: Reporter) -> None:
        await self.refused(reporter, 413, "RequestEntityTooLarge", "too large", b" " * (LIMIT + 1))

    async def test_a_train_job_that_is_not_there(self, reporter: Reporter) -> None:
        how = {"token": await reporter.token(of="absent"), "path": report_path("default", "absent")}
        await self.refused(reporter, 404, "NotFound", "Train job not found", REPORT, **how)

    @pytest.mark.parametrize(("method", "path"), [("POST", "/apis"), ("GET", ""), ("POST", "/")])
    async def test_any_other_place(self, reporter: Reporter, method: str, path: str) -> None:
        await self.refused(reporter, 404, "NotFound", "Not found", REPORT, method=method, path=path)


async def test_a_report_of_just_the_largest_size_is_taken(reporter: Reporter) -> None:
    body = b'{"other": "' + b"x" * (LIMIT - len(b'{"other": ""}')) + b'"}'
    assert len(body) == LIMIT
    code, _ = await reporter.post(body)
    assert code == 200
