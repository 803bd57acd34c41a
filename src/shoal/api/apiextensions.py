"""Custom resource definitions, as far as components of ours read them: which kinds are served, and whether yet."""

from __future__ import annotations

from shoal.api.meta import Object, Resource, Wire


class DefinedNames(Wire, frozen=True, kw_only=True):
    """What a defined kind is called."""

    plural: str = ""


class DefinedVersion(Wire, frozen=True, kw_only=True):
    """One version of a defined kind."""

    name: str = ""
    served: bool = False


class DefinitionSpec(Wire, frozen=True, kw_only=True):
    """Where a defined kind is to be found."""

    group: str = ""
    names: DefinedNames = DefinedNames()
    versions: list[DefinedVersion] = []


class DefinitionCondition(Wire, frozen=True, kw_only=True):
    """How far the server is with a definition."""

    type: str = ""
    status: str = ""


class DefinitionStatus(Wire, frozen=True, kw_only=True):
    """What the server made of a definition."""

    conditions: list[DefinitionCondition] | None = None
    """None while the server has only just taken it in: it then says null."""


class Definition(Object, frozen=True, kw_only=True):
    """A CustomResourceDefinition without its schemas."""

    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

    @property
    def is_established(self) -> bool:
        """Whether the server says that it serves the kind."""
        return any(one.type == "Established" and one.status == "True" for one in self.status.conditions or ())


DEFINITIONS = Resource(
    type=Definition,
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
