"""Admission of gangs: what is filled in, what is refused and why, and who may touch what was made for a set.

``defaults``, ``validation``, ``topology_bindings`` and ``authorizer`` are pure; ``webhooks`` offers them to API servers
at the paths and under the names that Grove's own webhooks have.
"""

from shoal.gangs.admission.defaults import defaulted
from shoal.gangs.admission.lookups import Lookups
from shoal.gangs.admission.validation import set_findings
from shoal.gangs.admission.webhooks import gang_webhooks, webhook_configurations

__all__ = ["Lookups", "defaulted", "gang_webhooks", "set_findings", "webhook_configurations"]
