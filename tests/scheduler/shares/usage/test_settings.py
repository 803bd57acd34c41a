"""``usageDBConfig``: where the past is read, and which part of it counts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.api.meta.duration import InvalidDuration
from shoal.scheduler.shares.usage.cron import Cron
from shoal.scheduler.shares.usage.settings import InvalidUsageSettings, UsageSettings, seconds, usage_settings
from shoal.scheduler.shares.usage.windows import Since, Sliding, Tumbling

WEEK = 7 * 24 * 3600.0
SERVER = {"clientType": "prometheus", "connectionString": "http://prometheus:9090"}


def read(config: dict[str, Any], environment: dict[str, str] | None = None) -> UsageSettings:
    return usage_settings(config, environment=environment or {}, now=1000.0)


def test_what_is_not_said_is_as_upstream_has_it() -> None:
    made = read(SERVER)

    assert made.address == "http://prometheus:9090"
    assert made.window == Sliding(WEEK)
    assert made.half_life is None
    assert (made.fetch_interval, made.staleness, made.wait_timeout) == (60, 300, 60)
    assert (made.query_timeout, made.resolution) == (10, 60)
    assert made.metrics["gpuAllocationMetric"] == "kai_queue_allocated_gpus"
    assert made.metrics["cpuCapacityMetric"] == 'sum(kube_node_status_capacity{resource="cpu"})'


def test_everything_can_be_said() -> None:
    parameters = {
        "windowSize": "2w",
        "windowType": "sliding",
        "halfLifePeriod": "1d",
        "fetchInterval": "30s",
        "stalenessPeriod": "2m",
        "waitTimeout": "5s",
        "extraParams": {
            "usageQueryTimeout": "3s",
            "queryResolution": "5m",
            "gpuAllocationMetric": "my_gpus",
            "gpuCapacityMetric": "my_total",
        },
    }

    made = read({**SERVER, "usageParams": parameters})

    assert made.window == Sliding(2 * WEEK)
    assert made.half_life == 86400
    assert (made.fetch_interval, made.staleness, made.wait_timeout) == (30, 120, 5)
    assert (made.query_timeout, made.resolution) == (3, 300)
    assert (made.metrics["gpuAllocationMetric"], made.metrics["gpuCapacityMetric"]) == ("my_gpus", "my_total")
    assert made.metrics["memoryAllocationMetric"] == "kai_queue_allocated_memory_bytes"


def test_the_own_memory_needs_no_address() -> None:
    assert read({"clientType": "builtin"}).client_type == "builtin"


def test_the_own_memory_may_have_a_directory() -> None:
    assert read({"clientType": "builtin"}).directory is None
    assert read({"clientType": "builtin", "connectionString": "/var/lib/usage"}).directory == Path("/var/lib/usage")
    named = {"clientType": "builtin", "connectionStringEnvVar": "USAGE"}
    assert read(named, {"USAGE": "/data"}).directory == Path("/data")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        pytest.param({"connectionString": "usage"}, "no directory such as", id="not absolute"),
        pytest.param(
            {"connectionStringEnvVar": "USAGE"}, "USAGE of connectionStringEnvVar is empty", id="empty variable"
        ),
        pytest.param({"connectionString": "/a", "connectionStringEnvVar": "USAGE"}, "not both", id="both"),
    ],
)
def test_a_directory_that_cannot_be_meant_is_refused(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidUsageSettings, match=problem):
        read({"clientType": "builtin", **config})


def test_the_address_may_come_from_the_environment() -> None:
    config = {"clientType": "prometheus", "connectionStringEnvVar": "USAGE"}

    assert read(config, {"USAGE": "https://example.org/prometheus/"}).address == "https://example.org/prometheus"


@pytest.mark.parametrize("value", ["2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1)])
def test_a_tumbling_window_has_a_first_one(value: object) -> None:
    made = read({**SERVER, "usageParams": {
        "windowType": "tumbling", "windowSize": "24h", "tumblingWindowStartTime": value,
    }})  # fmt: skip

    assert made.window == Tumbling(86400, datetime(2026, 1, 1, tzinfo=UTC).timestamp())


def test_without_a_first_one_a_tumbling_window_begins_now() -> None:
    assert read({**SERVER, "usageParams": {"windowType": "tumbling"}}).window == Tumbling(WEEK, 1000.0)


def test_a_calendar_may_say_when_a_window_begins() -> None:
    made = read({**SERVER, "usageParams": {"windowType": "cron", "cronString": "0 0 * * 0"}})

    assert made.window == Since(Cron.parse("0 0 * * 0"))


@pytest.mark.parametrize("text", ["0", "0s", "-3m"])
def test_a_half_life_that_is_none_is_no_decay(text: str) -> None:
    assert read({**SERVER, "usageParams": {"halfLifePeriod": text}}).half_life is None


def test_figures_are_never_stale_before_the_next_are_asked_for() -> None:
    made = read({**SERVER, "usageParams": {"fetchInterval": "10m", "stalenessPeriod": "1m"}})

    assert made.staleness == 600


@pytest.mark.parametrize(
    ("text", "length"), [("1w", WEEK), ("1w2d", WEEK + 2 * 86400), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25)]
)
def test_lengths_are_read_as_prometheus_and_go_write_them(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "1", "week", "1 w", "1x"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(InvalidDuration):
        seconds(text)


def with_parameters(**parameters: object) -> dict[str, Any]:
    return {**SERVER, "usageParams": parameters}


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "clientType None is not known: use prometheus or builtin"),
    ({"clientType": "fake"}, "clientType 'fake' is not known"),
    ({"clientType": "prometheus"}, "neither is set"),
    ({**SERVER, "connectionStringEnvVar": "USAGE"}, "both are set"),
    ({"clientType": "prometheus", "connectionStringEnvVar": "GONE"}, "environment variable GONE"),
    ({"clientType": "prometheus", "connectionString": "prometheus:9090"}, "is no address such as http://"),
    ({"clientType": "prometheus", "connectionString": "http://["}, "is no address such as http://"),
    ({**SERVER, "usageParams": "1w"}, "usageParams must be a mapping"),
    (with_parameters(extraParams=[]), "usageParams.extraParams must be a mapping"),
    (with_parameters(windowType="Sliding"), "usageParams.windowType 'Sliding' is not known"),
    (with_parameters(windowSize="a week"), "usageParams.windowSize: duration 'a week' is not valid"),
    (with_parameters(windowSize="0s"), "usageParams.windowSize '0s' must be longer than 0"),
    (with_parameters(fetchInterval="-1m"), "usageParams.fetchInterval '-1m' must be longer than 0"),
    (with_parameters(extraParams={"queryResolution": "often"}), "usageParams.extraParams.queryResolution"),
    (with_parameters(windowType="cron"), "usageParams.cronString: '' has 0 fields"),
    (with_parameters(windowType="tumbling", tumblingWindowStartTime="soon"),
     "tumblingWindowStartTime 'soon' is no time"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "problem"), BAD, ids=[problem for _, problem in BAD])
def test_a_bad_field_is_one_clear_sentence(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidUsageSettings) as caught:
        read(config)

    assert len(caught.value.problems) == 1
    assert problem in caught.value.problems[0]


def test_all_bad_fields_are_named_at_once() -> None:
    with pytest.raises(InvalidUsageSettings) as caught:
        read({"clientType": "prometheus", "usageParams": {"windowSize": "x", "windowType": "y", "fetchInterval": "z"}})

    assert len(caught.value.problems) == 4
