"""What queues used in the past, as a part of what there was: those that used much get less of the surplus now.

``settings`` reads the configuration, ``windows`` says which past counts and how much, ``history`` remembers it here,
``store`` keeps it in a file, ``prometheus`` asks a server that does, ``reader`` keeps its last answer as long as it is
fresh, ``past`` is what a running scheduler has of either.
"""

from shoal.scheduler.shares.usage.history import UnreadableHistory, UsageHistory
from shoal.scheduler.shares.usage.past import PastUse, past_use
from shoal.scheduler.shares.usage.prometheus import PrometheusUsage, UsageUnavailable
from shoal.scheduler.shares.usage.reader import UsageReader
from shoal.scheduler.shares.usage.settings import (
    BUILT_IN,
    PROMETHEUS,
    InvalidUsageSettings,
    UsageSettings,
    usage_settings,
)

__all__ = [
    "BUILT_IN",
    "PROMETHEUS",
    "InvalidUsageSettings",
    "PastUse",
    "PrometheusUsage",
    "UnreadableHistory",
    "UsageHistory",
    "UsageReader",
    "UsageSettings",
    "UsageUnavailable",
    "past_use",
    "usage_settings",
]
