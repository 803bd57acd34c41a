"""Whether this kernel translates the addresses of Services for us: tried out before anything depends on it."""

from __future__ import annotations

from shoal.cluster.node.process.runtime.netfilter import Netfilter, netfilter_socket
from shoal.cluster.node.process.runtime.nftables import Request, add_elements, delete_table
from shoal.cluster.node.process.runtime.service_table import (
    SERVICES,
    TABLE,
    Choice,
    add_choice,
    new_table,
    service_element,
    service_key,
)


def try_out() -> None:
    """Writes every kind of rule once, and removes it; raises OSError where the kernel refuses one."""
    netfilter = Netfilter(netfilter_socket())
    try:
        netfilter.apply([*new_table(), *_every_kind_of_rule(), delete_table(TABLE)])
        for _ in netfilter.connections():
            break
    finally:
        netfilter.close()


def _every_kind_of_rule() -> list[Request]:
    any_choice, kept_choice = Choice(1), Choice(1, affinity_seconds=1)
    element = service_element(service_key("192.0.2.1", "TCP", 80), any_choice)
    return [*add_choice(any_choice), *add_choice(kept_choice), *add_elements(TABLE, SERVICES, [element])]
