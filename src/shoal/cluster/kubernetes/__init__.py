"""A real Kubernetes on this machine: etcd and kube-apiserver as child processes, ready in about two seconds.

Tests stand on it, and so does ``shoal up --engine kube``.
"""

from shoal.cluster.kubernetes.admin import AdminApi, Refused, Unreachable
from shoal.cluster.kubernetes.binaries import Binaries, MissingBinaries, find_binaries
from shoal.cluster.kubernetes.launcher import Part, RealKubernetes, StartFailed, admin_of
from shoal.cluster.kubernetes.ports import PortTaken

__all__ = [
    "AdminApi",
    "Binaries",
    "MissingBinaries",
    "Part",
    "PortTaken",
    "RealKubernetes",
    "Refused",
    "StartFailed",
    "Unreachable",
    "admin_of",
    "find_binaries",
]
