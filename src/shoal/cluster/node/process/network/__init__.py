"""Names and services in the network of the pods: what a cluster's DNS and kube-proxy are elsewhere.

Both run outside of that network, on sockets that the runtime made inside, and answer from what they watch.
"""

from shoal.cluster.node.process.network.hosts import host_entries
from shoal.cluster.node.process.network.opening import NetworkRuntime, OpensSockets
from shoal.cluster.node.process.network.views import PROXIED_SERVICES, SERVING_SLICES
from shoal.cluster.node.process.network.wiring import add_network

__all__ = ["PROXIED_SERVICES", "SERVING_SLICES", "NetworkRuntime", "OpensSockets", "add_network", "host_entries"]
