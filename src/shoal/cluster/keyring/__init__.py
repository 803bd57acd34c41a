"""What the parts and users of one cluster prove themselves with, kept in its data dir.

Both engines use it, so that a kubeconfig goes on working when a cluster is started with the other one.
"""

from shoal.cluster.keyring.keyring import KUBELET_CLIENT, MASTERS, Keyring
from shoal.cluster.keyring.kubeconfig import kubeconfig, webhook_kubeconfig
from shoal.cluster.keyring.private_files import write_private
from shoal.cluster.keyring.user_tokens import TokenKey, User

__all__ = [
    "KUBELET_CLIENT",
    "MASTERS",
    "Keyring",
    "TokenKey",
    "User",
    "kubeconfig",
    "webhook_kubeconfig",
    "write_private",
]
