"""HTTP to an API server: the transport over TCP, a Unix socket or a proxy, and the words for what goes wrong there."""

from shoal.kube.http.transport import HttpTransport

__all__ = ["HttpTransport"]
