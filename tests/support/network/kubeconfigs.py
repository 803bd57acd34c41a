"""Small kubeconfigs for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def a_kubeconfig(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "dev",
) -> dict[str, Any]:
    """One cluster, one user and one context, all of one name; the context is the current one."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "https://host:6443"} if cluster is None else cluster}],
        "users": [{"name": name, "user": {} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | (context or {})}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path
