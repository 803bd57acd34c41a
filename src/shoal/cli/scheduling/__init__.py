"""Looking at the scheduler: ``shoal scheduler replay`` upon a snapshot, and ``shoal explain`` of a running one.

``replaying`` and ``explaining`` are the commands; ``pages`` is what people read of their answers.
"""

from shoal.cli.scheduling.explaining import EXAMPLES as EXPLAIN_EXAMPLES
from shoal.cli.scheduling.explaining import explain
from shoal.cli.scheduling.replaying import EXAMPLES as REPLAY_EXAMPLES
from shoal.cli.scheduling.replaying import replay

__all__ = ["EXPLAIN_EXAMPLES", "REPLAY_EXAMPLES", "explain", "replay"]
