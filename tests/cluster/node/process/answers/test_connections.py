"""Connections of the API server to pods that run in networks of their own, and to those that cannot be reached."""

from __future__ import annotations

from tests.cluster.apiserver.nodes.conftest import NODE
from tests.cluster.node.process.answers.conftest import PODS, Household

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode() + b" asked for " + self.path.encode())
server = http.server.ThreadingHTTPServer((sys.argv[1], 8080), Handler)
print("listens", flush=True)
server.serve_forever()
"""


async def refused(household: Household, pod: str, port: int = 8080) -> str:
    code, reason, message = await household.cluster.refusal(f"{PODS}/{pod}:{port}/proxy/")
    assert (code, reason) == (503, "ServiceUnavailable")
    return message.removeprefix("error trying to reach service: ")


async def test_a_pod_is_reached_at_its_address_from_the_network_of_its_node(household: Household) -> None:
    await household.start("web", "python3", "-c", SERVER, "10.88.0.2", says=b"listens")

    code, body = await household.cluster.call("GET", f"{PODS}/web:8080/proxy/here")

    assert (code, body) == (200, b"10.88.0.1 asked for /here")


async def test_what_listens_on_a_pods_loopback_alone_is_not_reached(household: Household) -> None:
    await household.start("web", "python3", "-c", SERVER, "127.0.0.1", says=b"listens")
    assert await refused(household, "web") == "dial tcp 10.88.0.2:8080: connect: connection refused"


async def test_a_pod_whose_sandbox_is_gone_is_not_running(household: Household) -> None:
    await household.start("web", "sleep", "1000")
    household.addresses.clear()
    assert await refused(household, "web") == "pod default/web is not running"


async def test_a_pod_in_the_network_of_the_machine_is_not_reached(household: Household) -> None:
    await household.start("web", "sleep", "1000")
    household.addresses = dict.fromkeys(household.addresses, "")
    told = await refused(household, "web")
    assert told.startswith("pod default/web uses the network of the machine, to which the API server does not connect")


async def test_a_pod_that_was_made_anew_is_another_one(household: Household) -> None:
    await household.start("web", "sleep", "1000")
    path = f"/api/v1/nodes/{NODE}/proxy/podConnect/default/web/another"
    code, status = await household.cluster.call("GET", path, query={"port": "80"})
    assert (code, status["message"]) == (404, "pod does not exist")


async def test_a_request_that_is_no_upgrade_is_refused(household: Household) -> None:
    await household.start("web", "sleep", "1000")
    path = f"/api/v1/nodes/{NODE}/proxy/podConnect/default/web/{household.pods['web'].metadata.uid}"
    code, status = await household.cluster.call("GET", path, query={"port": "80"})
    assert (code, status["message"]) == (400, "Upgrade request required: upgrade to tcp")
