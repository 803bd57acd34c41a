"""Kubernetes' own words for gangs, which every minor version so far has said otherwise: one translator for each.

``newest`` gives the one to use. They know nothing of each other, so that an old one can go when nobody serves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.backends.backend import Wanted
from shoal.gangs.backends.workloads.v1alpha1 import V1Alpha1
from shoal.gangs.backends.workloads.v1alpha2 import V1Alpha2
from shoal.gangs.backends.workloads.v1alpha3 import V1Alpha3

Kinds = frozenset[Resource[Document]]


class Version(Protocol):
    """One version of the API."""

    @property
    def needs(self) -> Kinds:
        """The kinds that must be served for it to be used."""

    @property
    def kinds(self) -> Kinds:
        """The kinds that it may write."""

    def translate(self, gang: PodGang, served: Kinds) -> Iterable[Wanted]:
        """What should be there for a gang; raises Untranslatable."""

    def pod_fields(self, gang: PodGang, clique: str) -> Mapping[str, Any]:
        """What of a pod's spec names its group."""


VERSIONS: tuple[Version, ...] = (V1Alpha3(), V1Alpha2(), V1Alpha1())
"""The newest first."""


def newest(served: Kinds) -> Version | None:
    """The newest version that the cluster serves whole."""
    return next((version for version in VERSIONS if version.needs <= served), None)


__all__ = ["VERSIONS", "Version", "newest"]
