"""A snapshot of a cluster with zones is decided upon as the cluster is."""

from __future__ import annotations

import pytest

from shoal.scheduler.configuration import configuration_of
from shoal.scheduler.replaying import replay
from shoal.scheduler.snapshots import configuration_document, read_snapshot
from shoal.scheduler.snapshots.writing import packed
from tests.scheduler.numa.builders import GPU, a_report
from tests.scheduler.snapshots.documents import a_document, a_group_object, a_node_object, a_pod_object, a_queue_object


@pytest.mark.parametrize(
    ("plugins", "placed"),
    [(("predicates", "numa"), []), (("predicates",), ["p-0"])],
    ids=["with the plugin", "without"],
)
def test_zones_decide_where_the_snapshots_scheduler_looked_at_them(plugins: tuple[str, ...], placed: list[str]) -> None:
    document = a_document(
        {
            "nodes": [a_node_object("n0")],
            "queues": [a_queue_object("team-a", quota=8)],
            "podGroups": [a_group_object("p")],
            "pods": [a_pod_object("p", gpus=6)],
            "nodeResourceTopologies": [a_report("n0", {GPU: "4"}, {GPU: "4"})],
        }
    )
    tiers = [{"plugins": [{"name": name} for name in plugins]}]
    document["config"] = configuration_document(configuration_of({"tiers": tiers}, source="a test"))
    found = replay(read_snapshot(packed(document)))
    assert [one.pod for one in found.placements] == placed
    if not placed:
        assert "NUMA" in found.waiting[0].message
