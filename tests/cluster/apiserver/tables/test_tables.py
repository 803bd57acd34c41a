"""What holds for all tables, and the rules that are best read as a table of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.tables import cells, columns, conditions, has_table, scale_cells, scale_columns
from shoal.cluster.apiserver.tables.ages import age, human_duration
from tests.cluster.apiserver.tables.custom_kinds import a_definition, kind_of, objects, value_columns
from tests.cluster.apiserver.tables.objects import all_cases

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds(rules={})}
POD = KINDS["v1", "Pod"]
CASES = all_cases("n")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3600, "<invalid>"),
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (5, "5s"),
        (119.9, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (599, "9m59s"),
        (600, "10m"),
        (630, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 12 * 60, "5h12m"),
        (8 * 3600, "8h"),
        (8 * 3600 + 900, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (76 * 3600, "3d4h"),
        (8 * 86400 - 1, "7d23h"),
        (8 * 86400, "8d"),
        (730 * 86400 - 1, "729d"),
        (730 * 86400, "2y"),
        (775 * 86400, "2y45d"),
        (2920 * 86400 - 1, "7y364d"),
        (2920 * 86400, "8y"),
        (3000 * 86400, "8y"),
        (10**12, "292y"),
    ],
)
def test_a_length_of_time_is_short_enough_to_read(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize("nothing", [None, "", "0001-01-01T00:00:00Z", "yesterday", "2026-05-04T03:02:01"])
def test_the_age_of_no_time_is_unknown(nothing: str | None) -> None:
    assert age(nothing, NOW) == "<unknown>"


def running(**more: Any) -> Object:
    return {"name": "a", "ready": True, "restartCount": 0, "state": {"running": {}}, **more}


def ended(code: int, reason: str = "") -> Object:
    return {"name": "a", "state": {"terminated": {"exitCode": code, "reason": reason}}}


@pytest.mark.parametrize(
    ("status", "ready", "word", "restarts"),
    [
        pytest.param({}, "0/1", "", "0", id="nothing is known"),
        pytest.param({"phase": "Pending"}, "0/1", "Pending", "0", id="pending"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, "0/1", "Evicted", "0", id="a reason of its own"),
        pytest.param({"phase": "Running", "containerStatuses": [running()]}, "1/1", "Running", "0", id="running"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "Crashing"}}}]},
            "0/1",
            "Crashing",
            "0",
            id="waiting",
        ),
        pytest.param({"phase": "Failed", "containerStatuses": [ended(7)]}, "0/1", "ExitCode:7", "0", id="exit code"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [running(restartCount=3)]},
            "1/1",
            "Running",
            "3",
            id="restarts at no known time",
        ),
        pytest.param(
            {
                "phase": "Running",
                "containerStatuses": [
                    running(restartCount=3, lastState={"terminated": {"finishedAt": "2026-05-04T02:57:01Z"}})
                ],
            },
            "1/1",
            "Running",
            "3 (5m ago)",
            id="restarts and when last",
        ),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {}}}]},
            "0/1",
            "Init:0/1",
            "0",
            id="initializing",
        ),
    ],
)
def test_a_pod_says_what_it_is_doing(status: Object, ready: str, word: str, restarts: str) -> None:
    spec = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}
    row = cells(POD, {"metadata": {"name": "p"}, "spec": spec, "status": status}, NOW)
    assert row == ["p", ready, word, restarts, "<unknown>", *["<none>"] * 4]


@pytest.mark.parametrize(
    ("phase", "reasons"), [("Succeeded", ["Succeeded"]), ("Failed", ["Failed"]), ("Running", []), (None, [])]
)
def test_the_row_of_a_pod_says_that_it_is_over(phase: str | None, reasons: list[str]) -> None:
    assert [each["reason"] for each in conditions(POD, {"status": {"phase": phase}})] == reasons


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: f"{kind.api_version}-{kind.kind}")
@pytest.mark.parametrize(
    "value",
    [{}, {"metadata": None, "spec": None, "status": None}, {"metadata": {"resourceVersion": "7", "annotations": {}}}],
    ids=["nothing", "nulls", "bookmark"],
)
def test_an_object_without_content_has_a_row(kind: Kind, value: Object) -> None:
    assert len(cells(kind, value, NOW)) == len(columns(kind)) + (kind.kind == "IPAddress")


@given(st.data())
def test_an_object_that_lacks_parts_has_a_row(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    whole = {**case.body, **case.patches.get("status", {})}
    kind = KINDS[case.api_version, case.kind]
    assert len(cells(kind, data.draw(less_of(whole)), NOW)) == len(columns(kind))


def less_of(value: Any) -> st.SearchStrategy[Any]:
    """The value with some fields of its objects left out, null or empty, and some items of its lists left out."""

    def thinned(draw: st.DrawFn, part: Any) -> Any:
        match part:
            case dict():
                kept = {field: thinned(draw, item) for field, item in part.items() if draw(st.integers(0, 4))}
                return kept if draw(st.integers(0, 6)) else draw(st.sampled_from([{}, None]))
            case list():
                kept_items = [thinned(draw, item) for item in part if draw(st.integers(0, 4))]
                return [item for item in kept_items if item is not None] if draw(st.integers(0, 6)) else None
        return part

    return st.composite(lambda draw: thinned(draw, value) or {})()


def test_a_kind_without_a_printer_has_a_name_and_a_time_of_creation() -> None:
    role = KINDS["rbac.authorization.k8s.io/v1", "Role"]
    made = {"metadata": {"name": "r", "creationTimestamp": "2026-05-04T03:02:00Z"}}
    assert [column["name"] for column in columns(role)] == ["Name", "Created At"]
    assert cells(role, made, NOW) == ["r", "2026-05-04T03:02:00Z"]
    assert cells(role, {}, NOW) == ["", "0001-01-01T00:00:00Z"]


def test_both_groups_of_events_print_the_same_of_one_event() -> None:
    shared = {"metadata": {"name": "e"}, "reason": "R", "type": "Normal", "reportingInstance": "i"}
    about = {"kind": "Pod", "name": "p"}
    core = {**shared, "involvedObject": about, "message": "m", "reportingComponent": "c", "count": 2}
    other = {**shared, "regarding": about, "note": "m", "reportingController": "c", "deprecatedCount": 2}
    printed = cells(KINDS["v1", "Event"], core, NOW)
    assert printed == cells(KINDS["events.k8s.io/v1", "Event"], other, NOW)
    assert printed == cells(KINDS["events.k8s.io/v1", "Event"], core, NOW, is_stored=True)
    assert printed[3:7] == ["pod/p", "", "c, i", "m"]


def test_an_autoscaler_of_the_first_version_prints_its_metric() -> None:
    spec = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 40, "scaleTargetRef": {"kind": "D", "name": "d"}}
    row = cells(KINDS["autoscaling/v1", "HorizontalPodAutoscaler"], {"metadata": {"name": "h"}, "spec": spec}, NOW)
    assert row[:3] == ["h", "D/d", "cpu: <unknown>/40%"]


def test_usage_is_summed_over_the_containers_of_a_pod() -> None:
    used = [{"usage": {"cpu": "100m", "memory": "1Mi"}}, {"usage": {"cpu": "250m", "memory": "2Mi"}}]
    metrics = {"metadata": {"name": "p"}, "containers": used, "window": "30s"}
    assert cells(KINDS["metrics.k8s.io/v1beta1", "PodMetrics"], metrics, NOW) == ["p", "350m", "3Mi", "30s"]


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        (("v1", "Pod", ""), True),
        (("v1", "Pod", "status"), True),
        (("v1", "Pod", "eviction"), False),
        (("apps/v1", "Deployment", "scale"), True),
        (("authentication.k8s.io/v1", "TokenReview", ""), False),
        (("resource.k8s.io/v1", "ResourceClaim", "status"), False),
    ],
    ids=str,
)
def test_there_is_a_table_of_what_can_be_read(place: tuple[str, str, str], answer: bool) -> None:
    version, kind, subresource = place
    assert has_table(KINDS[version, kind], subresource) is answer


VALUED = kind_of(a_definition("valued", "Valued", columns=value_columns()))


def test_a_custom_kind_without_columns_has_an_age() -> None:
    plain = kind_of(a_definition("plains", "Plain"))
    made = {"metadata": {"name": "p", "creationTimestamp": "2026-05-04T03:01:01Z"}}
    assert [(column["name"], column["type"]) for column in columns(plain)] == [("Name", "string"), ("Age", "date")]
    assert cells(plain, made, NOW) == ["p", "60s"]
    assert cells(plain, {}, NOW) == ["", None]


@pytest.mark.parametrize(
    ("value", "shown"),  # as string, integer, number, boolean, date
    [
        ("hello", ["hello", None, None, None, "<invalid>"]),
        ("", ["", None, None, None, "<unknown>"]),
        (None, ["<no value>", None, None, None, None]),
        (True, ["true", None, None, True, None]),
        (7, ["7", 7, 7, None, None]),
        (2.75, ["2.75", 2, 2.75, None, None]),
        (1234567.5, ["1.2345675e+06", 1234567, 1234567.5, None, None]),
        (1e21, ["1e+21", -(2**63), 1e21, None, None]),
        ([1.0, "a<b"], ['[1,"a\\u003cb"]', None, None, None, None]),
        ({"b": 1e21, "a": None}, ['{"a":null,"b":1e+21}', None, None, None, None]),
        ("2026-05-03T23:02:01-04:00", ["2026-05-03T23:02:01-04:00", None, None, None, "0s"]),
        ("2026-05-01", ["2026-05-01", None, None, None, "<invalid>"]),
    ],
    ids=repr,
)
def test_a_value_is_shown_as_its_column_asks(value: Any, shown: list[Any]) -> None:
    assert cells(VALUED, {"spec": {"value": value}}, NOW)[1:6] == shown


@given(st.sampled_from(list(objects().values())).flatmap(less_of))
def test_a_custom_object_that_lacks_parts_has_a_row(value: Object) -> None:
    assert len(cells(VALUED, value, NOW)) == len(columns(VALUED))


def test_columns_end_before_a_path_that_cannot_be_read() -> None:
    stated = [
        {"name": name, "type": "string", "jsonPath": path}
        for name, path in {"One": ".a", "Two": ".b[", "Three": ".c"}.items()
    ]
    kind = kind_of(a_definition("brokens", "Broken", columns=stated))
    assert [column["name"] for column in columns(kind)] == ["Name", "One"]


def test_a_column_is_described_by_its_path_where_nothing_else_is_said() -> None:
    described = {column["name"]: column["description"] for column in columns(VALUED)}
    assert described["Told"] == "It is told."
    assert described["Format"] == "Custom resource definition column (in JSONPath format): .spec.list[0]"


def test_a_scale_has_a_table_of_its_own() -> None:
    scale = {"metadata": {"name": "s"}, "spec": {"replicas": 3}, "status": {"replicas": 2}}
    assert scale_cells(KINDS["apps/v1", "Deployment"], scale, NOW) == ["s", 3, 2, "<unknown>"]
    custom = kind_of(a_definition("scaleds", "Scaled", scale={"specReplicasPath": ".a", "statusReplicasPath": ".b"}))
    assert scale_cells(custom, scale, NOW) == ["s", 3, 2, None]
    assert [column["name"] for column in scale_columns(custom)] == ["Name", "Desired", "Available", "Age"]


def test_a_printer_is_made_once_for_each_kind() -> None:
    assert columns(VALUED) is columns(VALUED)
    assert columns(POD) is columns(POD)
