"""Watches over nodes: says which have fallen silent, and keeps pods away from those that cannot run them.

Silent nodes get the condition Unknown and taints; pods leave a node as its taints and their tolerations say.
"""

from shoal.cluster.controllers.node_lifecycle.wiring import add_node_lifecycle

__all__ = ["add_node_lifecycle"]
