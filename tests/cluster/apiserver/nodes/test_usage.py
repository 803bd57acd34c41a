"""How usage is read of an agent's text, and what rates come of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.nodes.exposition import Container, Exposition, Measured, Point, read_exposition
from shoal.cluster.apiserver.nodes.usage import Readings, Series, Usage, node_metrics, pod_metrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = Container("default", "web", "main")

KUBELET_TEXT = b"""\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 4.710169 1633253812125
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="main",namespace="default",pod="web"} 1.253376e+07 1633253812125
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="main",namespace="default",pod="web"} 1.63325380e+09
container_swap_usage_bytes{container="main",namespace="default",pod="web"} 0 1633253812125
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 357.35491 1633253809720
node_memory_working_set_bytes 1.616273408e+09 1633253809720
pod_cpu_usage_seconds_total{namespace="default",pod="web"} 4.67812 1633253803935
scrape_error 0
"""


def test_a_kubelets_text_is_read() -> None:
    told = read_exposition(KUBELET_TEXT, now=0)
    assert told.node == Measured(cpu=Point(357.35491, 1633253809.72), memory=Point(1616273408, 1633253809.72))
    assert told.containers == {
        WEB: Measured(cpu=Point(4.710169, 1633253812.125), memory=Point(12533760, 1633253812.125), started=1633253800.0)
    }


@pytest.mark.parametrize(
    ("line", "cpu"),
    [
        (b"node_cpu_usage_seconds_total 1", Point(1, 7)),
        (b"node_cpu_usage_seconds_total\t1\t2000\r", Point(1, 2)),
        (b'node_cpu_usage_seconds_total{a="}",b="\\""} 1 2000', Point(1, 2)),
        (b"node_cpu_usage_seconds_total NaN 2000", None),
        (b"node_cpu_usage_seconds_total -1 2000", None),
        (b"node_cpu_usage_seconds_total +Inf 2000", None),
        (b"node_cpu_usage_seconds_total x 2000", None),
        (b"node_cpu_usage_seconds_total 1 99999999999999999999", None),
        (b"# node_cpu_usage_seconds_total 1", None),
        (b"my_node_cpu_usage_seconds_total 1", None),
        (b"node_cpu_usage_seconds_total", None),
    ],
    ids=[
        "no-time",
        "tabs",
        "odd-labels",
        "nan",
        "negative",
        "infinite",
        "words",
        "far-future",
        "comment",
        "other",
        "cut",
    ],
)
def test_odd_lines_are_read_or_passed_over(line: bytes, cpu: Point | None) -> None:
    assert read_exposition(line + b"\n", now=7).node.cpu == cpu


@given(st.binary(max_size=300))
def test_no_text_breaks_the_reading(text: bytes) -> None:
    read_exposition(b"node_cpu_usage_seconds_total " + text, now=0)
    read_exposition(b"container_cpu_usage_seconds_total{" + text, now=0)


def measured(cpu: float, at: float, *, memory: float = 2048, started: float | None = None) -> Measured:
    return Measured(Point(cpu, at), Point(memory, at), started)


def test_a_rate_needs_two_measurements_and_is_over_the_time_between_them() -> None:
    first = Readings().advanced(Exposition(measured(10, 100)))
    assert first.node.usage() is None
    second = first.advanced(Exposition(measured(13, 110)))
    assert second.node.usage() == Usage(nanocores=300_000_000, bytes=2048, at=110, window=10)


def test_a_measurement_that_comes_again_keeps_the_rate() -> None:
    readings = Readings()
    for cpu, at in ((10, 100), (13, 110), (13, 110)):
        readings = readings.advanced(Exposition(measured(cpu, at)))
    assert readings.node.usage() == Usage(nanocores=300_000_000, bytes=2048, at=110, window=10)


def test_a_rate_over_too_long_a_time_is_none() -> None:
    readings = Readings().advanced(Exposition(measured(10, 100))).advanced(Exposition(measured(13, 10_000)))
    assert readings.node.usage() is None


def test_a_container_that_began_again_is_measured_from_its_start() -> None:
    before, after = measured(500, 100), measured(4, 110, started=102)
    readings = Readings().advanced(Exposition(containers={WEB: before})).advanced(Exposition(containers={WEB: after}))
    assert readings.containers[WEB].usage() == Usage(nanocores=500_000_000, bytes=2048, at=110, window=8)


def test_a_container_that_is_gone_is_forgotten() -> None:
    readings = Readings().advanced(Exposition(containers={WEB: measured(1, 1)})).advanced(Exposition())
    assert readings.containers == {}


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e4)), max_size=8))
def test_no_rate_is_ever_negative(points: list[tuple[float, float]]) -> None:
    readings = Readings()
    for cpu, at in points:
        readings = readings.advanced(Exposition(measured(cpu, at)))
        usage = readings.node.usage()
        assert usage is None or (usage.nanocores >= 0 and usage.window > 0)


def test_usage_is_written_as_metrics_server_writes_it() -> None:
    usage = Usage(nanocores=156_340_731, bytes=1_616_273_408, at=1767225600.5, window=15.0004)
    assert node_metrics("a", {"zone": "z"}, usage, now=NOW) == {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"zone": "z"}},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "15s",
        "usage": {"cpu": "156340731n", "memory": "1578392Ki"},
    }


def test_a_pod_is_shown_when_all_of_its_containers_are_known() -> None:
    known, unknown = Series(measured(2, 20), Point(1, 10)), Series(measured(2, 20))
    shown: Any = pod_metrics("default", "web", {}, [("b", known), ("a", known)], now=NOW)
    assert [container["name"] for container in shown["containers"]] == ["a", "b"]
    assert shown["containers"][0]["usage"] == {"cpu": "100m", "memory": "2Ki"}
    assert (shown["metadata"]["namespace"], shown["window"]) == ("default", "10s")
    assert pod_metrics("default", "web", {}, [("b", known), ("a", unknown)], now=NOW) is None
    assert pod_metrics("default", "web", {}, [], now=NOW) is None
