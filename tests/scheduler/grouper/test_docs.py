"""The page for users names what there is, and its example is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from shoal.scheduler.grouper.kinds.registry import RULES, SKIPPED
from tests.scheduler.grouper.builders import a_grouped_pod, the_group

PAGE = (Path(__file__).parents[3] / "docs" / "pod-grouper.md").read_text()
EXAMPLES: list[Any] = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_every_kind_that_has_a_rule_is_in_the_table() -> None:
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| "))
    assert [kind for _, kind in (*RULES, *SKIPPED) if not re.search(rf"\b{kind}\b", rows)] == []


def test_the_example_gives_the_group_that_the_page_shows() -> None:
    job, group = EXAMPLES[:2]
    owner = {**job, "metadata": {**job["metadata"], "namespace": "team", "uid": "u"}}
    wanted = the_group(owner, pod=a_grouped_pod())
    assert wanted.name == "pg-train-u"
    assert {**wanted.body(frozenset())["spec"], "queue": wanted.queue} == group["spec"]


def test_every_label_and_annotation_of_the_tables_is_spelled_as_the_code_reads_it() -> None:
    source = Path(__file__).parents[3] / "src" / "shoal"
    known = "".join(file.read_text() for file in (source / "scheduler" / "grouper").rglob("*.py"))
    known += (source / "api" / "kai_names.py").read_text()
    named = set(re.findall(r"`((?:kai\.scheduler|ray\.io|autoscaling\.knative\.dev)/[a-z-]+)", PAGE))
    assert len(named) > 15
    assert sorted(name for name in named if f'"{name}"' not in known) == []
