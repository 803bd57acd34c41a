"""ComputeDomains (MNNVL): which of them a replica of a set needs, what pods say of them, and whether they can be had.

Cliques that ask for GPUs and are in the same MNNVL group share one domain in each replica of the set. The group is the
annotation ``grove.io/mnnvl-group``, looked for at the clique, its scaling group and the set; ``none`` means no group.
"""

from shoal.gangs.compute_domains.pods import with_compute_domain
from shoal.gangs.compute_domains.preflight import NoComputeDomains, check_compute_domains
from shoal.gangs.compute_domains.wanted import compute_domains, mnnvl_group

__all__ = [
    "NoComputeDomains",
    "check_compute_domains",
    "compute_domains",
    "mnnvl_group",
    "with_compute_domain",
]
