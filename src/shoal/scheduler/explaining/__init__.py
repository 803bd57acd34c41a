"""Why a job waits: what stands in its way, where it stands in line, who holds what it needs, and what would help.

``short`` is for every job in every cycle, ``explain`` for whoever asks; both read a session whose actions are done and
that is still open. ``Questions`` brings those who ask and the cycles together, ``explain_routes`` is for HTTP.
"""

from shoal.scheduler.explaining.evictions import eviction_message
from shoal.scheduler.explaining.explanation import Answer, Explanation, State
from shoal.scheduler.explaining.in_full import explain
from shoal.scheduler.explaining.podgroup_status import conditions, next_conditions, without_condition
from shoal.scheduler.explaining.questions import Questions, Unanswered
from shoal.scheduler.explaining.reasons import Cause, causes, short
from shoal.scheduler.explaining.routes import explain_routes
from shoal.scheduler.explaining.states import not_ready_message, state_of

__all__ = [
    "Answer",
    "Cause",
    "Explanation",
    "Questions",
    "State",
    "Unanswered",
    "causes",
    "conditions",
    "eviction_message",
    "explain",
    "explain_routes",
    "next_conditions",
    "not_ready_message",
    "short",
    "state_of",
    "without_condition",
]
