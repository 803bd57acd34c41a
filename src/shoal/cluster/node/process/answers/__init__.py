"""What the agent of this machine answers when it is asked about containers: logs, commands, their main process, ports.

``LocalKubelet`` is all of it; the API server reaches it through ``cluster.node.kubelet``.
"""

from shoal.cluster.node.process.answers.kubelet import LocalKubelet
from shoal.cluster.node.process.answers.residents import Residents

__all__ = ["LocalKubelet", "Residents"]
