"""How the controllers of gangs try again what failed."""

from __future__ import annotations

from shoal.kube.backoff import Backoff
from shoal.kube.queue import RetryLimits

RETRIES = RetryLimits(backoff=Backoff(initial=0.005, cap=30.0))
"""What stands in the way may go away without a word: a quota, a foreign object of a wanted name, a missing right."""
