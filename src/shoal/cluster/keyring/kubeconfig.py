"""Kubeconfig files: one server, one user, and what the user signs in with."""

from __future__ import annotations

import base64
from typing import Any

import yaml

from shoal.kube.certificates import KeyPair


def kubeconfig(server: str, *, authority: bytes, user: str, sign_in: str | KeyPair, name: str = "shoal") -> str:
    """A kubeconfig whose only context is this user at this server; ``sign_in`` is a token or a client certificate."""
    if isinstance(sign_in, KeyPair):
        credentials: dict[str, Any] = {
            "client-certificate-data": _base64(sign_in.certificate),
            "client-key-data": _base64(sign_in.key),
        }
    else:
        credentials = {"token": sign_in}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
            ],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
            "current-context": name,
        },
        sort_keys=False,
    )


def webhook_kubeconfig(url: str) -> str:
    """The file that tells an API server where a webhook answers: a kubeconfig without users."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "webhook", "cluster": {"server": url}}],
            "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": ""}}],
            "current-context": "webhook",
        }
    )


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
