"""A pod's name, hosts and resolver."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.node.process.contents import ConfigProblem, HostEntry, NodeFacts
from shoal.cluster.node.process.contents.etc import hostname_of, hosts, kernel_hostname, resolv_conf
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.contents.conftest import ADDRESS

PRIVATE = NodeFacts(network="private")
SHARED = NodeFacts(network="host", address="192.168.1.2")
MACHINE_HOSTS = "127.0.0.1 localhost\n127.0.1.1 laptop"
MACHINE_RESOLVER = "# by hand\nnameserver 192.168.1.1\nsearch lan home.\noptions edns0 timeout:1\n"


@pytest.mark.parametrize(
    ("spec", "short", "domain"),
    [
        ({}, "web", ""),
        ({"hostname": "db-0"}, "db-0", ""),
        ({"hostname": "db-0", "subdomain": "db"}, "db-0", "db.team.svc.cluster.local"),
        ({"subdomain": "db"}, "web", "db.team.svc.cluster.local"),
        ({"hostNetwork": True}, "laptop", ""),
        ({"hostnameOverride": "very.own", "subdomain": "db"}, "very.own", ""),
        ({"metadata": {"name": "a" * 62 + ".b"}}, "a" * 62, ""),
    ],
)
def test_a_pod_has_a_name(spec: dict[str, Any], short: str, domain: str) -> None:
    assert hostname_of(a_local_pod(**spec), PRIVATE, machine_name="laptop") == (short, domain)


def test_the_full_name_is_the_kernels_only_where_that_is_asked_for_and_fits() -> None:
    def kernel(**spec: Any) -> str:
        pod = a_local_pod(subdomain="db", **spec)
        return kernel_hostname(pod, hostname_of(pod, PRIVATE, machine_name="laptop"))

    assert kernel() == "web"
    assert kernel(setHostnameAsFQDN=True) == "web.db.team.svc.cluster.local"
    with pytest.raises(ConfigProblem, match=r"FQDN a{63}.* is too long \(64 characters is the max, 89"):
        kernel(setHostnameAsFQDN=True, hostname="a" * 63)


def written(facts: NodeFacts, address: str = ADDRESS, names: list[HostEntry] | None = None, **spec: Any) -> str:
    pod = a_local_pod(**spec)
    name = hostname_of(pod, facts, machine_name="laptop")
    return hosts(pod, facts, name, address=address, machine_hosts=MACHINE_HOSTS, others=names or [])


def test_a_pod_with_its_own_network_finds_itself_and_its_aliases() -> None:
    alias = {"ip": "10.1.2.3", "hostnames": ["one", "two"]}
    text = written(PRIVATE, subdomain="db", hostAliases=[alias])
    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert f"\n{ADDRESS}\tweb.db.team.svc.cluster.local\tweb\n" in text
    assert text.endswith("\n# Entries added by HostAliases.\n10.1.2.3\tone\ttwo\n")
    assert "laptop" not in text


def test_a_pod_in_the_nodes_network_has_the_machines_hosts() -> None:
    text = written(PRIVATE, address="10.88.0.1", hostNetwork=True, hostAliases=[{"ip": "10.1.2.3", "hostnames": ["a"]}])
    assert text == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n127.0.1.1 laptop\n"
        "\n# Entries added by HostAliases.\n10.1.2.3\ta\n"
    )


def test_without_a_network_of_its_own_a_pod_finds_the_clusters_names_in_its_hosts() -> None:
    names = [HostEntry("192.168.1.2", ["db", "db.team.svc.cluster.local"])]
    text = written(SHARED, address="192.168.1.2", names=names)
    assert "127.0.1.1 laptop\n192.168.1.2\tweb\n192.168.1.2\tdb\tdb.team.svc.cluster.local\n" in text


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {},
            "nameserver 10.88.0.1\nsearch team.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
        ),
        (
            {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
            "nameserver 10.88.0.1\nsearch team.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
        ),
        ({"dnsPolicy": "Default"}, "nameserver 10.88.0.1\n"),
        ({"hostNetwork": True}, "nameserver 10.88.0.1\n"),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1", "8.8.8.8", "9.9.9.9", "4.4.4.4"]}},
            "nameserver 1.1.1.1\nnameserver 8.8.8.8\nnameserver 9.9.9.9\n",
        ),
        (
            {
                "dnsConfig": {
                    "nameservers": ["10.88.0.1", "1.1.1.1"],
                    "searches": ["my.org", "cluster.local"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
                }
            },
            "nameserver 10.88.0.1\nnameserver 1.1.1.1\n"
            "search team.svc.cluster.local svc.cluster.local cluster.local my.org\noptions ndots:2 edns0\n",
        ),
    ],
)
def test_names_are_asked_of_the_node(spec: dict[str, Any], expected: str) -> None:
    assert resolv_conf(a_local_pod(**spec), PRIVATE, machine_resolv_conf=MACHINE_RESOLVER) == expected


def test_in_the_machines_network_names_are_asked_of_whom_the_machine_asks() -> None:
    text = resolv_conf(a_local_pod(), SHARED, machine_resolv_conf=MACHINE_RESOLVER)
    assert text == "nameserver 192.168.1.1\nsearch lan home\noptions edns0 timeout:1\n"
    more = a_local_pod(dnsConfig={"searches": ["my.org"]})
    assert "search lan home my.org\n" in resolv_conf(more, SHARED, machine_resolv_conf=MACHINE_RESOLVER)


def test_domains_beyond_what_resolvers_take_are_left_out() -> None:
    many = [f"{'d' * 60}.{index}.example" for index in range(40)]
    text = resolv_conf(a_local_pod(dnsConfig={"searches": [*many, "x" * 254]}), PRIVATE, machine_resolv_conf="")
    search = next(line for line in text.splitlines() if line.startswith("search"))
    assert len(search) <= 2048 + len("search ")
    assert len(search.split()) <= 33
