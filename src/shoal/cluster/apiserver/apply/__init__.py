"""Server-side apply and managedFields: who owns which field of an object, and what a write changes about that.

``record_update`` keeps the books of ordinary writes, ``apply`` merges a configuration into an object, ``keep_times``
takes back new times where nothing else is new, and the two of scale carry ownership to a Scale and back.
"""

from shoal.cluster.apiserver.apply.scale import entries_for_scale, entries_from_scale
from shoal.cluster.apiserver.apply.writes import apply, keep_times, record_update

__all__ = ["apply", "entries_for_scale", "entries_from_scale", "keep_times", "record_update"]
