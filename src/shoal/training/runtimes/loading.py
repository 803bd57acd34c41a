"""Reading the manifests of built-in runtimes, for those who install them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any, Final

import yaml

from shoal.api.trainer import names

LABELS: Final = {
    names.MANAGED_BY_LABEL: names.INSTALLER,
    # They are sound, and must be there before a webhook that would say so.
    names.VALIDATION_LABEL: names.VALIDATION_DISABLED,
}
"""What all of them carry, besides what their manifests say."""


def built_in_runtimes() -> dict[str, dict[str, Any]]:
    """All of them as objects to apply, by name and in its order."""
    folder = files("shoal.training.runtimes") / "manifests"
    found = [
        yaml.safe_load(file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".yaml")
    ]
    return {
        body["metadata"]["name"]: _labelled(body)
        for body in sorted(found, key=lambda body: str(body["metadata"]["name"]))
    }


def chosen_runtimes(wanted: Iterable[str]) -> list[dict[str, Any]]:
    """Those of these names, or all where none is named; raises LookupError, which names those that there are."""
    known = built_in_runtimes()
    chosen = list(wanted) or list(known)
    if unknown := [name for name in chosen if name not in known]:
        raise LookupError(f"there is no built-in runtime {unknown[0]!r}: choose among {', '.join(known)}")
    return [known[name] for name in chosen]


def _labelled(body: dict[str, Any]) -> dict[str, Any]:
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "labels": {**metadata["labels"], **LABELS}}}
