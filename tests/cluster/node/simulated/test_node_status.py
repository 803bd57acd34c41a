"""Where the nodes say that their agent is found, by those who know no sockets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from shoal.api.core import Node
from shoal.cluster.node.simulated.node_status import new_status, node_annotations, node_patch
from tests.support.builders.nodes import a_node

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SOCKET, ADDRESS = "/data/agents/simulated.sock", "10.192.0.1"
LOOPBACK = {"type": "Loopback", "address": "127.0.0.1"}


def a_simulated_node(port: int | None) -> Node:
    status = new_status("sim-0-0", {"cpu": "1"}, ADDRESS, NOW, port=port)
    return a_node("sim-0-0", annotations=node_annotations(SOCKET), status=status)


def patch(node: Node, port: int | None) -> dict[str, Any]:
    return node_patch(node, socket=SOCKET, port=port, address=ADDRESS, now=NOW)


def test_an_agent_on_a_port_is_found_on_this_machine_and_the_node_keeps_its_own_address() -> None:
    status = new_status("sim-0-0", {}, ADDRESS, NOW, port=41234)

    assert [one["type"] for one in status["addresses"]] == ["InternalIP", "Hostname", "Loopback"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 41234}}


def test_a_port_that_moved_is_written_and_one_that_did_not_is_not() -> None:
    moved = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 41235}}, "addresses": [LOOPBACK]}

    assert patch(a_simulated_node(41234), 41234) == {}
    assert patch(a_simulated_node(None), None) == {}
    assert patch(a_simulated_node(41234), 41235) == {"status": moved}
    assert patch(a_simulated_node(None), 41235) == {"status": moved}
