"""The example of a third party's backend: what it says, and that an entry point is all it needs to be at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.coscheduling import POD_GROUPS, Coscheduling
from shoal.api import grove, scheduler_grove_io
from shoal.gangs.backends import Backends
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from tests.gangs.backends.at_work import Gangs
from tests.gangs.backends.builders import a_gang, a_group
from tests.gangs.builders import a_set, typed
from tests.support.clusters.client import install
from tests.support.clusters.in_process import in_process_cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "coscheduling.py"
DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduler-backends.md"


def a_definition() -> dict[str, Any]:
    """The kind of the example's scheduler, as little of it as is needed."""
    number = {"type": "integer"}
    spec = {"type": "object", "properties": {"minMember": number, "scheduleTimeoutSeconds": number}}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": POD_GROUPS.full_name},
        "spec": {
            "group": POD_GROUPS.group,
            "scope": "Namespaced",
            "names": {"kind": POD_GROUPS.kind, "plural": POD_GROUPS.plural},
            "versions": [
                {
                    "name": POD_GROUPS.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example as a package that somebody installed."""
    facts = tmp_path / "coscheduling-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: coscheduling\nVersion: 1.0\n")
    entry = "[shoal.gangs.backends]\ncoscheduling = examples.coscheduling:Coscheduling\n"
    (facts / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_whole_gang_is_one_pod_group_that_pods_name() -> None:
    gang = a_gang(a_group("web-0-a", 2), a_group("web-0-b", 3))
    [wanted] = Coscheduling().translate(gang, typed(a_set()), frozenset())
    assert wanted.body["spec"]["minMember"] == 5
    assert Coscheduling().marks(gang, "web-0-a").labels == {"scheduling.x-k8s.io/pod-group": "web-0"}


@pytest.mark.usefixtures("installed")
def test_a_scheduler_is_known_by_its_entry_point_alone() -> None:
    assert Backends.load().label("scheduler-plugins-scheduler") == "coscheduling"


OURS = (*grove.DEFINITIONS, *scheduler_grove_io.DEFINITIONS)


@pytest.mark.usefixtures("installed")
async def test_it_waits_for_its_kind_and_then_works_like_our_own(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path / "server", OURS) as cluster:
        gangs = Gangs(cluster)
        async with gangs.backends():
            uid = await gangs.make(backend="coscheduling")
            await gangs.ready("KindNotServed")
            await install(cluster.client, a_definition())
            await gangs.ready("Synced")
            found = await gangs.there(POD_GROUPS, "web-0")
            assert found["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 60}
            assert found["metadata"]["ownerReferences"][0]["uid"] == uid
            await cluster.client.delete(POD_GROUPS, "web-0", "default")
            await gangs.there(POD_GROUPS, "web-0")


def test_the_document_shows_the_example_as_it_is() -> None:
    source = {line.strip() for line in EXAMPLE.read_text().splitlines()}
    [shown] = [block.split("```")[0] for block in DOCUMENT.read_text().split("```python\n")[1:]]
    assert [line for line in shown.splitlines() if line.strip() not in source] == []
