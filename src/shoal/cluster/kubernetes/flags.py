"""The command line of each part, as pure functions of where its files are.

etcd listens on Unix sockets in the data dir and nowhere else: no port to choose, no certificate to make, and nobody but
the owner of the folder can reach it. The names are relative, since a socket's path may have 107 characters at most;
so etcd and kube-apiserver run with the data dir as their working directory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from shoal.api.core import LOOPBACK_ADDRESS

# etcd wants something that looks like a port and makes it a part of the file's name.
CLIENT_SOCKET = "unix://etcd.sock:0"
PEER_SOCKET = "unix://etcd-peer.sock:0"
SERVICE_ADDRESSES = {4: "10.96.0.0/16", 6: "fd00:10:96::/112"}
FIRST_SERVICE_ADDRESSES = ("10.96.0.1", "fd00:10:96::1")
LOOPBACK = {4: "127.0.0.1", 6: "::1"}
ISSUER = "https://kubernetes.default.svc.cluster.local"
NODE_ADDRESSES = (LOOPBACK_ADDRESS, "Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""How kubelets are looked for: ours on this machine, others as usual."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where the files are that several parts read."""

    data_dir: Path
    authority: Path
    authority_key: Path
    serving_certificate: Path
    serving_key: Path
    kubelet_client_certificate: Path
    kubelet_client_key: Path
    service_account_key: Path
    tokens: Path
    token_webhook: Path


def etcd(*, durable: bool) -> list[str]:
    """A single member; its elections, which it alone votes in, take no time."""
    return [
        "--name=shoal",
        "--data-dir=etcd",
        f"--listen-client-urls={CLIENT_SOCKET}",
        f"--advertise-client-urls={CLIENT_SOCKET}",
        f"--listen-peer-urls={PEER_SOCKET}",
        f"--initial-advertise-peer-urls={PEER_SOCKET}",
        f"--initial-cluster=shoal={PEER_SOCKET}",
        "--heartbeat-interval=20",
        "--election-timeout=100",
        f"--quota-backend-bytes={8 * 1024**3}",
        "--log-level=warn",
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def api_server(
    files: Files,
    *,
    bind: str,
    port: int,
    has_controller_manager: bool,
    verifies_kubelets: bool,
    egress: Path | None = None,
) -> list[str]:
    """Node and RBAC authorization; users by token, webhook-reviewed token and client certificate.

    ``egress`` is a file that says how pods and Services are connected to; without it they are dialled.
    """
    address = ip_address(bind)
    return [
        f"--etcd-servers={CLIENT_SOCKET}",
        f"--bind-address={bind}",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        # Where it listens everywhere it would look for a default route, which not every machine has.
        *([f"--advertise-address={LOOPBACK[address.version]}"] if address.is_unspecified else []),
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={files.serving_certificate}",
        f"--tls-private-key-file={files.serving_key}",
        f"--client-ca-file={files.authority}",
        f"--kubelet-client-certificate={files.kubelet_client_certificate}",
        f"--kubelet-client-key={files.kubelet_client_key}",
        *([f"--kubelet-certificate-authority={files.authority}"] if verifies_kubelets else []),
        f"--kubelet-preferred-address-types={','.join(NODE_ADDRESSES)}",
        f"--token-auth-file={files.tokens}",
        f"--authentication-token-webhook-config-file={files.token_webhook}",
        "--authentication-token-webhook-version=v1",
        *([f"--egress-selector-config-file={egress}"] if egress is not None else []),
        "--authorization-mode=Node,RBAC",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES[address.version]}",
        "--allow-privileged=true",
        "--profiling=false",
        # Nobody else makes the service accounts without which this plugin refuses every pod.
        *([] if has_controller_manager else ["--disable-admission-plugins=ServiceAccount"]),
    ]


def egress_selection(socket: Path) -> str:
    """What makes the API server connect to everything of the cluster by an HTTP CONNECT proxy on a Unix socket."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(socket)}}}
    selection = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    return json.dumps(selection, indent=2)


WORKLOAD_VERSIONS = {35: "v1alpha1", 36: "v1alpha2", 37: "v1alpha3"}
"""What each minor version of Kubernetes calls its Workload API, which has to be switched on."""


def workloads(minor: int | None) -> dict[str, list[str]]:
    """What switches the Workload API on, by program; nothing where a Kubernetes is not known to have it.

    A server does not start with the name of a version or of a gate that it does not know.
    """
    version = WORKLOAD_VERSIONS.get(minor or 0)
    if version is None:
        return {}
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    return {
        "kube-apiserver": [gates, f"--runtime-config=scheduling.k8s.io/{version}=true"],
        "kube-controller-manager": [gates],
        "kube-scheduler": [gates],
    }


def controller_manager(files: Files, kubeconfig: Path) -> list[str]:
    """All controllers, at a pace that a single machine's tests want rather than a shared server."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.authority}",
        f"--cluster-signing-cert-file={files.authority}",
        f"--cluster-signing-key-file={files.authority_key}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        # Otherwise it makes a folder under /usr.
        f"--flex-volume-plugin-dir={files.data_dir / 'flexvolume'}",
        "--profiling=false",
    ]


def scheduler(kubeconfig: Path) -> list[str]:
    """Kubernetes' own scheduler, for pods that name no other."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--profiling=false",
    ]
