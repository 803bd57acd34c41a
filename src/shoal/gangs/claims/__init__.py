"""Claims of devices (DRA) that pods of a set share: which ResourceClaims there should be, and what pods say of them.

A claim belongs to a level: the set, one of its scaling groups, or a clique. It is there once, or once for each replica
of its level (a replica of the set or of the group, or a pod of the clique).
"""

from shoal.gangs.claims.pods import with_claims
from shoal.gangs.claims.templates import MissingTemplate, Templates, external_templates, template_specs
from shoal.gangs.claims.wanted import clique_claims, group_claims, replica_claims, set_claims, split

__all__ = [
    "MissingTemplate",
    "Templates",
    "clique_claims",
    "external_templates",
    "group_claims",
    "replica_claims",
    "set_claims",
    "split",
    "template_specs",
    "with_claims",
]
