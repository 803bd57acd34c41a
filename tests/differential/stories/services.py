"""Services: who is behind them, in Endpoints and EndpointSlices."""

from __future__ import annotations

from tests.differential.objects import a_bare_pod, a_container, a_service, an_object
from tests.differential.story import Story, Teller

WEB = {"labels": {"app": "web"}}


def _slices(c: Teller, ready: int, count: int = 1) -> None:
    """Waits until there are so many slices with so many ready endpoints."""

    def holds() -> bool:
        slices = c.all_of("EndpointSlice")
        endpoints = [one for slice_ in slices for one in slice_.get("endpoints") or []]
        return len(slices) == count and sum(one["conditions"].get("ready") is True for one in endpoints) == ready

    c.until(holds, f"{ready} endpoints are ready in {count} slices")


def _listed(c: Teller, ready: int, not_ready: int = 0, name: str = "web") -> None:
    """Waits until the Endpoints name so many addresses."""

    def holds() -> bool:
        subsets = (c.find("Endpoints", name) or {}).get("subsets") or []
        found = [sum(len(one.get(part) or []) for one in subsets) for part in ("addresses", "notReadyAddresses")]
        return c.find("Endpoints", name) is not None and found == [ready, not_ready]

    c.until(holds, f"{ready} addresses are ready, {not_ready} are not")


def _pods(c: Teller, *names: str, ready: bool = True) -> None:
    node = c.a_silent_node()
    for number, name in enumerate(names, start=1):
        c.create(a_bare_pod(name, WEB, **node))
        c.run(c.get("Pod", name), ready=ready, ip=f"10.250.0.{number}")


def _plain(c: Teller) -> None:
    c.create(a_service(metadata={"labels": {"team": "a"}}))
    _slices(c, 0)
    _listed(c, 0)
    c.snapshot("nobody is there")
    _pods(c, "a", "b")
    _slices(c, 2)
    _listed(c, 2)
    c.snapshot("two")
    c.run(c.get("Pod", "b"), ready=False, ip="10.250.0.2")
    _slices(c, 1)
    _listed(c, 1, 1)
    c.snapshot("one is not ready")
    c.delete("Pod", "a", grace=0)
    _slices(c, 0)
    _listed(c, 0, 1)
    c.snapshot("one is gone")
    c.delete("Service", "web")
    c.until_gone("Endpoints", "web")
    c.until(lambda: not c.all_of("EndpointSlice"))
    c.snapshot("the service is gone")


def _on_nodes(c: Teller) -> None:
    c.create(a_bare_pod("one", WEB, hostname="first", subdomain="web"), a_service(clusterIP="None"))
    c.until_ready(1)
    _slices(c, 1)
    _listed(c, 1)
    c.snapshot("with a hostname and a node")


def _named_ports(c: Teller) -> None:
    ports = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    c.create(a_service(ports=ports))
    node = c.a_silent_node()
    for number, (name, port) in enumerate((("a", 8080), ("b", 9090), ("c", 0)), start=1):
        own = [{"name": "web", "containerPort": port}] if port else []
        c.create(a_bare_pod(name, WEB, **node, containers=[a_container(ports=own)]))
        c.run(c.get("Pod", name), ip=f"10.250.0.{number}")
    c.until(lambda: len(c.all_of("EndpointSlice")) == 3)
    _listed(c, 4 + 1)
    c.snapshot("one name, three numbers")


def _unready(c: Teller) -> None:
    c.create(a_service(publishNotReadyAddresses=True))
    _pods(c, "a", ready=False)
    _slices(c, 1)
    _listed(c, 1)
    c.snapshot("published though it is not ready")


def _headless(c: Teller) -> None:
    c.create(a_service(clusterIP="None", ports=[]))
    _pods(c, "a")
    _slices(c, 1)
    _listed(c, 1)
    c.snapshot("without ports")


def _terminating(c: Teller) -> None:
    c.create(a_service())
    _pods(c, "a")
    _slices(c, 1)
    c.delete("Pod", "a")
    _slices(c, 0)
    _listed(c, 0)
    c.snapshot("it serves until it has ended")
    c.finish(c.get("Pod", "a"))
    c.until(lambda: not c.all_of("EndpointSlice")[0].get("endpoints"))
    c.snapshot("it has ended")


def _mirrored(c: Teller) -> None:
    service = an_object("v1", "Service", "out", spec={"ports": [{"name": "db", "port": 5432}]})
    subsets = [
        {
            "addresses": [{"ip": "192.0.2.1", "hostname": "one"}, {"ip": "192.0.2.2"}],
            "notReadyAddresses": [{"ip": "192.0.2.3"}],
            "ports": [{"name": "db", "port": 5432}],
        }
    ]
    c.create(service, an_object("v1", "Endpoints", "out", subsets=subsets, metadata={"labels": {"by": "hand"}}))
    _slices(c, 2)
    c.snapshot("mirrored")
    subsets[0]["addresses"] = [{"ip": "192.0.2.9"}]
    c.patch("Endpoints", "out", {"subsets": subsets})
    _slices(c, 1)
    c.snapshot("changed")
    c.delete("Endpoints", "out")
    c.until(lambda: not c.all_of("EndpointSlice"))
    c.snapshot("gone")


def _not_mirrored(c: Teller) -> None:
    subsets = [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 1}]}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    c.create(an_object("v1", "Service", "out", spec={"ports": [{"port": 1}]}))
    c.create(an_object("v1", "Endpoints", "out", subsets=subsets, metadata={"labels": labels}))
    c.create(an_object("v1", "Endpoints", "alone", subsets=subsets))
    c.snapshot("one does not want it, and one has no service")


def _external(c: Teller) -> None:
    c.create(an_object("v1", "Service", "out", spec={"type": "ExternalName", "externalName": "example.com"}))
    c.create(an_object("v1", "Service", "bare", spec={"ports": [{"port": 1}]}))
    c.snapshot("nothing is behind them")


def _selector(c: Teller) -> None:
    c.create(a_service())
    _pods(c, "a")
    _slices(c, 1)
    _listed(c, 1)
    c.patch("Service", "web", {"spec": {"selector": {"app": "none"}}, "metadata": {"labels": {"new": "label"}}})
    _slices(c, 0)
    _listed(c, 0)
    c.snapshot("another selector")
    c.patch("Service", "web", {"spec": {"selector": {"app": "web"}, "ports": [{"port": 81}]}})
    _slices(c, 1)
    _listed(c, 1)
    c.snapshot("another port")


def _pod_label(c: Teller) -> None:
    c.create(a_service())
    _pods(c, "a", "b")
    _slices(c, 2)
    c.patch("Pod", "a", {"metadata": {"labels": {"app": "other"}}})
    _slices(c, 1)
    _listed(c, 1)
    c.snapshot("a pod has left")


def _repaired(c: Teller) -> None:
    c.create(a_service())
    _pods(c, "a")
    _slices(c, 1)
    _listed(c, 1)
    before = c.all_of("EndpointSlice")[0]["metadata"]["name"]
    c.delete("EndpointSlice", before)
    c.delete("Endpoints", "web")
    c.until(lambda: c.find("Endpoints", "web") and c.find("EndpointSlice", before) is None)
    _slices(c, 1)
    _listed(c, 1)
    c.snapshot("what was deleted is there again")


def _zones(preference: str) -> Story:
    def tell(c: Teller) -> None:
        c.create(a_service(trafficDistribution=preference))
        for zone in "ab":
            metadata = {"name": f"{c.namespace}.{zone}", "labels": {"topology.kubernetes.io/zone": zone}}
            c.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        c.later()  # a server may take a moment to know a node's zone
        for number, zone in enumerate("ab", start=1):
            c.create(a_bare_pod(zone, WEB, nodeName=f"{c.namespace}.{zone}", schedulerName="nobody"))
            c.run(c.get("Pod", zone), ip=f"10.250.0.{number}")
        _slices(c, 2)
        _listed(c, 2)
        c.snapshot("near endpoints are hinted at")

    return Story(f"service prefers {preference}", tell)


def _becomes_external(c: Teller) -> None:
    c.create(a_service())
    _pods(c, "a")
    _slices(c, 1)
    _listed(c, 1)
    c.patch("Service", "web", {"spec": {"selector": None}})
    c.later()
    c.snapshot("without its selector all stays as it is")


STORIES = [
    Story("service with pods", _plain),
    Story("service headless on nodes", _on_nodes),
    Story("service named ports", _named_ports),
    Story("service publishes unready pods", _unready),
    Story("service headless without ports", _headless),
    Story("service with a terminating pod", _terminating),
    Story("service mirrored endpoints", _mirrored),
    Story("service endpoints that are not mirrored", _not_mirrored),
    Story("service without a selector", _external),
    Story("service is changed", _selector),
    Story("service loses a pod", _pod_label),
    Story("service is repaired", _repaired),
    *(_zones(preference) for preference in ("PreferSameZone", "PreferSameNode", "PreferClose")),
    Story("service loses its selector", _becomes_external),
]
