"""What stands behind a Service, as both forms of endpoints need to know it: which pods, at which addresses and ports.

Here are the rules, and what is remembered between two looks at a service; who writes the objects lives elsewhere.
"""

from shoal.cluster.controllers.backends.addresses import IpAddress, parse_ip
from shoal.cluster.controllers.backends.members import Members
from shoal.cluster.controllers.backends.memory import Pacing, TriggerTimes
from shoal.cluster.controllers.backends.pods import (
    changes_endpoints,
    host_name,
    is_headless,
    may_serve,
    target_port,
)
from shoal.cluster.controllers.backends.printed import printed_hash
from shoal.cluster.controllers.backends.subsets import pack, repack

__all__ = [
    "IpAddress",
    "Members",
    "Pacing",
    "TriggerTimes",
    "changes_endpoints",
    "host_name",
    "is_headless",
    "may_serve",
    "pack",
    "parse_ip",
    "printed_hash",
    "repack",
    "target_port",
]
