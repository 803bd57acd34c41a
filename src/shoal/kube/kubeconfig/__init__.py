"""Finds the cluster to talk to, as kubectl does: reads kubeconfig files, merges them and turns the chosen context into
a ``Connection``; where there is no file, the account of the pod that the process runs in."""

from shoal.kube.connection import Connection
from shoal.kube.kubeconfig.files import KubeconfigError
from shoal.kube.kubeconfig.find import load_connection

__all__ = ["Connection", "KubeconfigError", "load_connection"]
