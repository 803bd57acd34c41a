"""What is said of topologies when they are written."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api.kai_scheduler import Topology
from shoal.scheduler.admission.topologies import topology_problems


def a_topology(*levels: tuple[str, str]) -> Topology:
    """Levels by label and alias; an empty alias is none."""
    said = [{"nodeLabel": label, **({"alias": alias} if alias else {})} for label, alias in levels]
    return msgspec.convert({"metadata": {"name": "net"}, "spec": {"levels": said}}, Topology)


@pytest.mark.parametrize(
    ("topology", "fields"),
    [
        pytest.param(a_topology(("zone", ""), ("rack", "")), [], id="no aliases"),
        pytest.param(a_topology(("x/zone", "zone"), ("x/rack", "rack")), [], id="aliases"),
        pytest.param(a_topology(("x/zone", "z"), ("x/rack", "z")), ["spec.levels[1].alias"], id="the same twice"),
        pytest.param(a_topology(("x/zone", "x/rack"), ("x/rack", "")), ["spec.levels[0].alias"], id="another's label"),
        pytest.param(a_topology(("zone", "zone")), ["spec.levels[0].alias"], id="its own label"),
    ],
)
def test_a_level_is_found_by_one_name_alone(topology: Topology, fields: list[str]) -> None:
    assert [problem.path for problem in topology_problems(topology)] == fields
