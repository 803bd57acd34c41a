"""Everything that a container finds: its environment, volumes, image, /etc files, ids and rights.

``Contents`` makes it so on disk and says to the runtime what it is; the rules are pure functions beside it.
"""

from shoal.cluster.node.process.contents.contents import Contents
from shoal.cluster.node.process.contents.etc import HostEntry
from shoal.cluster.node.process.contents.facts import ApiAddress, NodeFacts
from shoal.cluster.node.process.contents.problems import ConfigProblem, VolumeProblem

__all__ = ["ApiAddress", "ConfigProblem", "Contents", "HostEntry", "NodeFacts", "VolumeProblem"]
