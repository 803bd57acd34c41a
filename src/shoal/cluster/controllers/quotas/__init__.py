"""The status of ResourceQuotas: how much of what a quota limits its namespace uses.

What objects use is measured by the rules that admission charges them by; here what has become free is given back.
"""

from __future__ import annotations

from shoal.cluster.controllers.quotas.controller import add_quotas

__all__ = ["add_quotas"]
