"""A pod's own name, and what its containers find in ``/etc``: hosts, hostname, resolv.conf.

In a network of its own a pod asks the node for every name, since nothing else can be reached from there: the policies
``ClusterFirst`` and ``Default`` differ in the domains that are searched alone. In the machine's network it resolves
names as the machine does, and those of the cluster are written into its hosts file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shoal.api.core.pod_details import DnsConfig, DnsOption, HostAlias, PodDetails
from shoal.cluster.node.process.contents.facts import NodeFacts
from shoal.cluster.node.process.contents.problems import CONFIG_ERROR, ConfigProblem

_LONGEST_HOSTNAME, _LONGEST_FULL_NAME = 63, 64
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCH, _LONGEST_SEARCHES = 3, 32, 253, 2048

_HEADER = "# Kubernetes-managed hosts file.\n"
_MACHINE_HEADER = "# Kubernetes-managed hosts file (host network).\n"
_EVERYWHERE = """\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


class HostEntry(NamedTuple):
    """An address and its names."""

    address: str
    names: Sequence[str]


class Hostname(NamedTuple):
    """The name of a pod: a short one, and the domain that it is in (empty where it is in none)."""

    short: str
    domain: str

    @property
    def names(self) -> list[str]:
        """The names that its address has in its own hosts file."""
        return [f"{self.short}.{self.domain}", self.short] if self.domain else [self.short]


def hostname_of(pod: PodDetails, facts: NodeFacts, *, machine_name: str) -> Hostname:
    """The name of a pod; one in the node's own network has the machine's."""
    spec = pod.spec
    if spec.hostname_override is not None:
        return Hostname(_fitting(spec.hostname_override), "")
    if spec.host_network:
        return Hostname(_fitting(machine_name), "")
    domain = f"{spec.subdomain}.{pod.metadata.namespace}.svc.{facts.cluster_domain}" if spec.subdomain else ""
    return Hostname(_fitting(spec.hostname or pod.metadata.name), domain)


def kernel_hostname(pod: PodDetails, hostname: Hostname) -> str:
    """What ``hostname`` prints in the pod; ConfigProblem where the full name is asked for and too long."""
    if not (pod.spec.set_hostname_as_fqdn and hostname.domain):
        return hostname.short
    full = hostname.names[0]
    if len(full) > _LONGEST_FULL_NAME:
        raise ConfigProblem(
            CONFIG_ERROR,
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long "
            f"({_LONGEST_FULL_NAME} characters is the max, {len(full)} characters requested)",
        )
    return full


def hosts(
    pod: PodDetails,
    facts: NodeFacts,
    hostname: Hostname,
    *,
    address: str,
    machine_hosts: str,
    others: Iterable[tuple[str, Sequence[str]]] = (),
) -> str:
    """The hosts file of a pod. ``others`` are the names of the cluster, for pods that have nobody to ask for them."""
    own = _line(address, hostname.names) if address else ""
    if facts.network == "private" and not pod.spec.host_network:
        return _HEADER + _EVERYWHERE + own + _aliases(pod.spec.host_aliases)
    text = _MACHINE_HEADER + machine_hosts
    if not text.endswith("\n"):
        text += "\n"
    if facts.network == "host":
        if not pod.spec.host_network:
            text += own
        text += "".join(_line(address, names) for address, names in others)
    return text + _aliases(pod.spec.host_aliases)


def resolv_conf(pod: PodDetails, facts: NodeFacts, *, machine_resolv_conf: str) -> str:
    """How names are resolved in a pod."""
    policy = pod.spec.dns_policy
    if policy == "None":
        found = Resolver()
    elif facts.network == "host":
        found = parse_resolv_conf(machine_resolv_conf)
    elif policy == "Default" or (policy == "ClusterFirst" and pod.spec.host_network):
        found = Resolver(nameservers=[facts.nameserver])
    else:
        domain = facts.cluster_domain
        searches = [f"{pod.metadata.namespace}.svc.{domain}", f"svc.{domain}", domain]
        found = Resolver(nameservers=[facts.nameserver], searches=searches, options={"ndots": "5"})
    if pod.spec.dns_config is not None:
        found = _with(found, pod.spec.dns_config)
    return _text(found)


@dataclass(frozen=True, kw_only=True)
class Resolver:
    """What a resolv.conf says."""

    nameservers: Sequence[str] = ()
    searches: Sequence[str] = ()
    options: Mapping[str, str | None] | None = None


def parse_resolv_conf(text: str) -> Resolver:
    """Reads a resolv.conf: nameservers add up, the last list of domains counts, options go by their names."""
    nameservers: list[str] = []
    searches: list[str] = []
    options: dict[str, str | None] = {}
    for line in text.splitlines():
        match line.split():
            case ["nameserver", address, *_]:
                nameservers.append(address)
            case ["search" | "domain", *domains]:
                searches = [domain.removesuffix(".") for domain in domains if domain != "."]
            case ["options", *written]:
                for option in written:
                    name, has_value, value = option.partition(":")
                    options[name] = value if has_value else None
    return Resolver(nameservers=nameservers, searches=searches, options=options)


def _with(found: Resolver, more: DnsConfig) -> Resolver:
    return Resolver(
        nameservers=list(dict.fromkeys([*found.nameservers, *more.nameservers])),
        searches=list(dict.fromkeys([*found.searches, *more.searches])),
        options={**(found.options or {}), **{option.name: _value(option) for option in more.options}},
    )


def _value(option: DnsOption) -> str | None:
    return option.value or None


def _text(found: Resolver) -> str:
    searches = [domain for domain in found.searches[:_MOST_SEARCHES] if len(domain) <= _LONGEST_SEARCH]
    while len(" ".join(searches)) > _LONGEST_SEARCHES:
        searches.pop()
    options = [name if value is None else f"{name}:{value}" for name, value in (found.options or {}).items()]
    lines = [f"nameserver {address}" for address in found.nameservers[:_MOST_NAMESERVERS]]
    if searches:
        lines.append(f"search {' '.join(searches)}")
    if options:
        lines.append(f"options {' '.join(options)}")
    return "".join(f"{line}\n" for line in lines)


def _aliases(aliases: Sequence[HostAlias]) -> str:
    if not aliases:
        return ""
    lines = "".join(_line(alias.ip, alias.hostnames) for alias in aliases)
    return f"\n# Entries added by HostAliases.\n{lines}"


def _line(address: str, names: Sequence[str]) -> str:
    return "\t".join([address, *names]) + "\n"


def _fitting(name: str) -> str:
    """The name as long as the kernel and other programs take it."""
    return name[:_LONGEST_HOSTNAME].rstrip("-.")
