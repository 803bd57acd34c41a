"""The declaration of a custom kind, and the CustomResourceDefinition it means.

A ``Version`` adds to a ``Resource`` what one version shows and offers (columns, subresources); a ``CustomResource``
joins the versions of one kind. The manifest leaves out what the server fills in by itself, and its keys have a fixed
order: the same declaration gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from shoal.api.crd.schema import object_schema
from shoal.api.meta.resource import Resource


class DefinitionError(Exception):
    """A declaration contradicts itself: names the kind and what does not fit."""

    def __init__(self, kind: str, problem: str) -> None:
        self.kind = kind
        self.problem = problem
        super().__init__(f"definition of {kind}: {problem}")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column that ``kubectl get`` shows; those above priority 0 only with ``-o wide``."""

    name: str
    path: str
    type: Literal["integer", "number", "string", "boolean", "date"] = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def to_wire(self) -> dict[str, Any]:
        """The column as a CRD carries it."""
        wire = {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "jsonPath": self.path,
            "priority": self.priority,
        }
        return {key: value for key, value in wire.items() if value}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where the scale subresource finds its three values, as JSON paths."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""

    def to_wire(self) -> dict[str, Any]:
        """The paths as a CRD carries them."""
        wire = {"specReplicasPath": self.spec_replicas, "statusReplicasPath": self.status_replicas}
        return {**wire, "labelSelectorPath": self.selector} if self.selector else wire


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a kind. ``deprecated`` is the warning that its users see, or True for the server's own."""

    resource: Resource[Any]
    served: bool = True
    storage: bool = True
    status: bool = False
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    deprecated: bool | str = False

    def to_wire(self) -> dict[str, Any]:
        """The version as a CRD carries it, with the schema of its type."""
        wire: dict[str, Any] = {"name": self.resource.version, "served": self.served, "storage": self.storage}
        if self.deprecated:
            wire["deprecated"] = True
        if isinstance(self.deprecated, str) and self.deprecated:
            wire["deprecationWarning"] = self.deprecated
        wire["schema"] = {"openAPIV3Schema": object_schema(self.resource.type)}
        if self.status or self.scale:
            wire["subresources"] = {"status": {}} if self.status else {}
        if self.scale:
            wire["subresources"]["scale"] = self.scale.to_wire()
        if self.selectable_fields:
            wire["selectableFields"] = [{"jsonPath": path} for path in self.selectable_fields]
        if self.columns:
            wire["additionalPrinterColumns"] = [column.to_wire() for column in self.columns]
        return wire


@dataclass(frozen=True, kw_only=True)
class CustomResource:
    """A kind of ours: its versions, of which one is stored, and its names. Versions differ in no field's meaning."""

    versions: tuple[Version, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if problem := next(_problems(self.versions), None):
            raise DefinitionError(self.versions[0].resource.kind if self.versions else "nothing", problem)

    @property
    def resource(self) -> Resource[Any]:
        """The version that is stored."""
        return next(version.resource for version in self.versions if version.storage)

    @property
    def group(self) -> str:
        """The API group."""
        return self.resource.group

    @property
    def kind(self) -> str:
        """The kind."""
        return self.resource.kind

    @property
    def name(self) -> str:
        """``plural.group``: the name of the definition itself."""
        return self.resource.full_name

    def manifest(self) -> dict[str, Any]:
        """The CustomResourceDefinition, as plain JSON values in a fixed order."""
        resource = self.resource
        names: dict[str, Any] = {
            "kind": resource.kind,
            "listKind": f"{resource.kind}List",
            "plural": resource.plural,
            "singular": self.singular or resource.kind.lower(),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        if self.categories:
            names["categories"] = list(self.categories)
        spec: dict[str, Any] = {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version.to_wire() for version in self.versions],
        }
        if len(self.versions) > 1:
            spec["conversion"] = {"strategy": "None"}
        metadata: dict[str, Any] = {"name": resource.full_name}
        if self.annotations:
            metadata["annotations"] = dict(sorted(self.annotations.items()))
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": spec,
        }


def _problems(versions: tuple[Version, ...]) -> Iterator[str]:
    if not versions:
        yield "it has no version"
        return
    first = versions[0].resource
    for other in (version.resource for version in versions[1:]):
        for part in ("group", "kind", "plural", "namespaced"):
            if getattr(other, part) != getattr(first, part):
                yield f"{first} and {other} differ in {part}: they are two kinds"
    names = [version.resource.version for version in versions]
    if len(set(names)) < len(names):
        yield f"a version is declared twice among {', '.join(names)}"
    stored = [version.resource.version for version in versions if version.storage]
    if len(stored) != 1:
        yield f"exactly one version is stored, and here it is {' and '.join(stored) or 'none'}"
    if not first.group:
        yield "the core group holds no custom kinds"
    for version in versions:
        yield from _version_problems(version)


def _version_problems(version: Version) -> Iterator[str]:
    name = version.resource.version
    paths = [(f"column {column.name}", column.path, ".") for column in version.columns]
    paths += [("selectable field", path, ".") for path in version.selectable_fields]
    if version.scale:
        paths.append(("scale.spec_replicas", version.scale.spec_replicas, ".spec."))
        paths.append(("scale.status_replicas", version.scale.status_replicas, ".status."))
    if version.scale and version.scale.selector and not version.scale.selector.startswith((".spec.", ".status.")):
        yield f"{name}: scale.selector has path {version.scale.selector}: it must begin with .spec. or .status."
    for what, path, start in paths:
        if not path.startswith(start):
            yield f"{name}: {what} has path {path}: it must begin with {start}"
    if isinstance(version.deprecated, str) and len(version.deprecated) > 256:
        yield f"{name}: the deprecation warning is longer than 256 characters"
