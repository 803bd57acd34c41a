"""What a report says, and what is said of one that is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.training.progress.reports import Refusal, trainer_status

NOW = "2026-01-31T09:30:00Z"
WHOLE = {
    "progressPercentage": 42,
    "estimatedRemainingSeconds": 90,
    "metrics": [{"name": "loss", "value": "0.25"}],
    "lastUpdatedTime": NOW,
}

TAKEN: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "all there is": ({"trainerStatus": WHOLE}, WHOLE),
    "no status": ({"progressPercentage": 5}, None),
    "a status of null": ({"trainerStatus": None}, None),
    "fields of null": (
        {"trainerStatus": {"progressPercentage": None, "metrics": None, "lastUpdatedTime": NOW}},
        {"lastUpdatedTime": NOW},
    ),
    "fields of a newer Trainer": (
        {
            "trainerStatus": {
                "progressPercentage": 5,
                "metrics": [{"name": "loss", "value": "1", "unit": "nats"}],
                "phase": "warm-up",
                "lastUpdatedTime": NOW,
            },
            "initializerStatus": {},
        },
        {"progressPercentage": 5, "metrics": [{"name": "loss", "value": "1"}], "lastUpdatedTime": NOW},
    ),
}


@pytest.mark.parametrize(("report", "expected"), TAKEN.values(), ids=TAKEN)
def test_what_is_taken_of_a_report(report: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert trainer_status(msgspec.json.encode(report)) == expected


def of(**fields: Any) -> bytes:
    return msgspec.json.encode({"trainerStatus": {**fields, "lastUpdatedTime": NOW}})


REFUSED = {
    "a figure that is a number": (
        of(metrics=[{"name": "loss", "value": 0.25}]),
        "trainerStatus.metrics[0].value: Expected `str`, got `float`",
    ),
    "a figure without a value": (
        of(metrics=[{"name": "loss", "value": "1"}, {"name": "accuracy"}]),
        "trainerStatus.metrics[1]: Object missing required field `value`",
    ),
    "figures by name": (of(metrics={"loss": 0.25}), "trainerStatus.metrics: Expected `array`, got `object`"),
    "progress as text": (of(progressPercentage="42"), "trainerStatus.progressPercentage: Expected `int`, got `str`"),
    "a part of a percent": (
        of(progressPercentage=0.5),
        "trainerStatus.progressPercentage: Expected `int`, got `float`",
    ),
    "a rest without end": (of(estimatedRemainingSeconds=2**70), "trainerStatus.estimatedRemainingSeconds: "),
    "nothing but a field that is none": (
        of(progress=42),
        "trainerStatus.progress: there is no such field: there are progressPercentage, estimatedRemainingSeconds, "
        "metrics, lastUpdatedTime",
    ),
    "a status that is a number": (b'{"trainerStatus": 3}', "trainerStatus: Expected `object`, got `int`"),
    "a list": (b"[1]", "Expected `object`, got `array`"),
    "half of it": (b'{"trainerStatus": {', "Input data was truncated"),
    "Python's quotes": (b"{'trainerStatus': {}}", "JSON is malformed: object keys must be strings (byte 1)"),
    "other bytes than text": (b'{"trainerStatus": "\xff"}', "'utf-8' codec can't decode byte 0xff"),
    "a deep hole": (b"[" * 5000, "it is nested too deeply"),
}


@pytest.mark.parametrize(("body", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_what_is_wrong_and_where(body: bytes, problem: str) -> None:
    with pytest.raises(Refusal) as refused:
        trainer_status(body)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message.startswith(f"Invalid payload: {problem}")
