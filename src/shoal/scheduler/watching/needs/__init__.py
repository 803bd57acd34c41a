"""What pods need of other objects: ConfigMaps, volumes, devices. Which of them are there, and which nodes reach them.

``Needs`` keeps what is known of such objects, says what a pod needs, and finds the pods that a change concerns: those
that looked at what has changed, and no others.
"""

from shoal.scheduler.watching.needs.gear import NO_GEAR, Gear
from shoal.scheduler.watching.needs.ledger import Needs
from shoal.scheduler.watching.needs.need import NO_NEED, Need
from shoal.scheduler.watching.needs.stock import Kind, ObjectKey

__all__ = ["NO_GEAR", "NO_NEED", "Gear", "Kind", "Need", "Needs", "ObjectKey"]
