"""What the server asks the agents of nodes for: logs, commands, ports and the like of pods, and how much is used.

The server is a relay here: it finds the agent, checks what can be checked, and passes on what is said.
"""

from shoal.cluster.apiserver.nodes.agents import SOCKET_ANNOTATION, Agents
from shoal.cluster.apiserver.nodes.pod_connections import PodDialer
from shoal.cluster.apiserver.nodes.service_backends import ServiceBackends
from shoal.cluster.apiserver.nodes.specials import NodeSpecials

__all__ = ["SOCKET_ANNOTATION", "Agents", "NodeSpecials", "PodDialer", "ServiceBackends"]
