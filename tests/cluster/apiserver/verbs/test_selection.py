from __future__ import annotations

from dataclasses import replace

import pytest

from shoal.cluster.apiserver.kinds.kind import Kind, Rules
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.storage import Record
from shoal.cluster.apiserver.verbs.selection import selection

KINDS = {(kind.group, kind.kind): kind for kind in builtin_kinds({})}
PODS = replace(KINDS["", "Pod"], rules=Rules(fields={"status.phase": lambda pod: str(pod["status"]["phase"])}))
CONFIG_MAPS = KINDS["", "ConfigMap"]


def a_record(name: str, *, phase: str = "Running", **labels: str) -> Record:
    return Record("team", name, 1, b"{}", labels, {"status.phase": phase}, "uid")


PODS_THERE = [a_record("a", app="web"), a_record("b", app="db"), a_record("c", phase="Failed", app="web", tier="x")]

CASES = {
    "everything": ("", "", "abc"),
    "a label": ("app=web", "", "ac"),
    "labels in sets": ("app in (web, db),tier", "", "c"),
    "a name": ("", "metadata.name=b", "b"),
    "not a name": ("", "metadata.name!=b", "ac"),
    "a field": ("", "status.phase=Failed", "c"),
    "not a field": ("", "status.phase!=Failed", "ab"),
    "both": ("app=web", "status.phase==Running", "a"),
    "the namespace": ("", "metadata.namespace=other", ""),
    "contradiction": ("", "metadata.name=a,metadata.name=b", ""),
}


@pytest.mark.parametrize(("labels", "fields", "expected"), CASES.values(), ids=CASES)
def test_a_selection_picks_what_both_selectors_match(labels: str, fields: str, expected: str) -> None:
    selects = selection(PODS, labels, fields).selects
    assert "".join(pod.name for pod in PODS_THERE if selects is None or selects(pod)) == expected


def test_a_selection_of_one_name_says_so() -> None:
    assert selection(PODS, "", "metadata.name=b").name == "b"
    assert selection(PODS, "app=web", "").name is None


REFUSALS: dict[str, tuple[Kind, str, str, str]] = {
    "unknown field of a kind with fields": (PODS, "", "spec.x=1", "field label not supported: spec.x"),
    "unknown field of a kind without": (
        CONFIG_MAPS,
        "",
        "x=1",
        '"x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    "no comparison": (PODS, "", "a", "invalid selector: 'a'; can't understand 'a'"),
    "half a set": (PODS, "a in", "", "unable to parse requirement: found '' expected: '('"),
}


@pytest.mark.parametrize(("kind", "labels", "fields", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_selector_that_cannot_be_read_is_refused(kind: Kind, labels: str, fields: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        selection(kind, labels, fields)
    assert (refused.value.status.code, refused.value.status.message) == (400, message)
