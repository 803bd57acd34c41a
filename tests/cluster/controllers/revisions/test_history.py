"""Making revisions on a server, where names may be taken."""

from __future__ import annotations

from shoal.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS
from shoal.cluster.controllers.revisions import Draft, RevisionHistory, revision_data
from shoal.kube import Manager
from tests.cluster.controllers.stateful_sets.conftest import stateful_set_manifest
from tests.support.clusters.in_process import Cluster


def a_draft(image: str) -> Draft:
    return Draft(
        number=2,
        data=revision_data({"spec": {"containers": [{"name": "main", "image": image}]}}),
        labels={"app": "web"},
        annotations={"note": "kept"},
        hash_label="hash",
        hash_of=lambda collisions: f"taken-{collisions or 0}",
    )


async def test_a_name_that_is_taken_by_other_data_is_passed_over(cluster: Cluster) -> None:
    manager = Manager(cluster.server.transport(), name="controllers")
    history = RevisionHistory(manager, STATEFUL_SETS, manager.writer("test"))
    owner = await cluster.make(STATEFUL_SETS, stateful_set_manifest())

    first, collisions = await history.create(owner, a_draft("one"), 0)
    assert (first.metadata.name, collisions) == ("web-taken-0", 0)
    again, collisions = await history.create(owner, a_draft("one"), 0)
    assert (again.metadata.uid, collisions) == (first.metadata.uid, 0)
    second, collisions = await history.create(owner, a_draft("two"), 0)
    assert (second.metadata.name, collisions) == ("web-taken-1", 1)

    stored = await cluster.read(CONTROLLER_REVISIONS, "web-taken-1")
    assert stored is not None
    assert stored["metadata"]["labels"] == {"app": "web", "hash": "taken-1"}
    assert stored["metadata"]["annotations"] == {"note": "kept"}
    assert stored["metadata"]["ownerReferences"][0]["name"] == "web"
    assert (await history.renumber(second, 7)).revision == 7
