"""The kubelet's API, as the API server asks agents for logs, commands and usage: on a Unix socket, or a port.

An agent answers by implementing ``Kubelet``; one socket may serve any number of nodes. What is refused is ``Refused``.
"""

from shoal.cluster.node.kubelet.access import SecurePort, secure
from shoal.cluster.node.kubelet.answers import ContainerUsage, Kubelet, Line, LogOptions, NodeUsage, Refused
from shoal.cluster.node.kubelet.serving import serving

__all__ = [
    "ContainerUsage",
    "Kubelet",
    "Line",
    "LogOptions",
    "NodeUsage",
    "Refused",
    "SecurePort",
    "secure",
    "serving",
]
