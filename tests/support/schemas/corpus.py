"""Upstream's own files, as data for tests: present beside the repository on machines that develop Shoal.

Tests that need them are skipped, with one line that says so, where they are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CORPUS = Path(os.environ.get("SHOAL_CORPUS") or Path(__file__).parents[4] / "shared" / "corpus")

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C one where it was built: some of the files have ten thousand lines."""

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"upstream's files are not in {CORPUS} (set SHOAL_CORPUS to where they are)"
)


def upstream_definition(project: str, name: str) -> dict[str, Any]:
    """An upstream CRD by its name, such as ``queues.scheduling.run.ai``."""
    plural, _, group = name.partition(".")
    [definition] = _documents(CORPUS / project / "crds" / f"{group}_{plural}.yaml")
    return definition


def upstream_samples(project: str) -> list[tuple[str, dict[str, Any]]]:
    """Every object in a project's sample manifests, each with ``file: kind/name`` to tell it by."""
    files = sorted((CORPUS / project / "samples").glob("*.yaml"))
    return [
        (f"{file.stem}: {sample['kind']}/{sample.get('metadata', {}).get('name')}", sample)
        for file in files
        for sample in _documents(file)
        if "apiVersion" in sample and "kind" in sample
    ]


def _documents(file: Path) -> Iterator[dict[str, Any]]:
    for document in yaml.load_all(file.read_text(), Loader=_LOADER):
        if isinstance(document, dict):
            yield document
