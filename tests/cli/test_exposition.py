from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from shoal.cli.processes.exposition import merged

API = """\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{code="200"} 3.0
requests_total{code="201"} 1.0
# TYPE up gauge
up 1.0
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{le="+Inf"} 4.0
took_seconds_count 4.0
took_seconds_sum 0.5
"""
CONTROLLERS = """\
# HELP up Whether it runs.
# TYPE up gauge
up 1.0
# TYPE requests_total counter
requests_total{code="200",path="/a b"} 7.0
untyped{} 2.0
"""


def test_a_family_of_several_components_is_stated_once_and_says_whose_samples_are_whose() -> None:
    page = merged({"api": API, "controllers": CONTROLLERS})
    samples = {
        (sample.name, sample.labels["component"], sample.labels.get("code")): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert samples == {
        ("requests_total", "api", "200"): 3,
        ("requests_total", "api", "201"): 1,
        ("requests_total", "controllers", "200"): 7,
        ("up", "api", None): 1,
        ("up", "controllers", None): 1,
        ("took_seconds_bucket", "api", None): 4,
        ("took_seconds_count", "api", None): 4,
        ("took_seconds_sum", "api", None): 0.5,
        ("untyped", "controllers", None): 2,
    }
    assert page.count("# TYPE up gauge") == page.count("# TYPE requests_total counter") == 1


def test_no_pages_are_an_empty_page() -> None:
    assert merged({}) == "\n"
