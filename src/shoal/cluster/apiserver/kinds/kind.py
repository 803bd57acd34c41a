"""One served kind: what it is called, what shape it has, and what rules hold for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.api.meta import dns1123_subdomain_problems
from shoal.cluster.apiserver.schema import Schema
from shoal.kube.admission.fields import FieldProblem

Object = dict[str, Any]
"""An API object as plain JSON values."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a kind does beyond its schema; all functions are pure but for the object that they are told to complete.

    ``defaults`` and ``prepare_*`` complete the new object in place (it belongs to them) and never touch the old one.
    """

    name_problems: Callable[[str], list[str]] = dns1123_subdomain_problems
    defaults: Callable[[Object], None] = lambda _new: None
    """Fills in what a client left out, as decoding does in Kubernetes; runs on every body and every patched object."""
    prepare_create: Callable[[Object], None] = lambda _new: None
    """Sets what the server decides at creation and drops what a client may not set; metadata and status are done."""
    prepare_update: Callable[[Object, Object], None] = lambda _new, _old: None
    """The same for an update (new, old); status is the old one's already, where it is a subresource."""
    prepare_status: Callable[[Object, Object], None] = lambda _new, _old: None
    validate_create: Callable[[Object], list[FieldProblem]] = lambda _new: []
    validate_update: Callable[[Object, Object], list[FieldProblem]] = lambda _new, _old: []
    validate_status: Callable[[Object, Object], list[FieldProblem]] = lambda _new, _old: []
    warnings: Callable[[Object], list[str]] = lambda _new: []
    checks_metadata: bool = True
    """Whether the kind's own validation looks at metadata too: its problems are told with all others, and finalizers
    need a prefix. Otherwise metadata count only where the rest is right, and finalizers are free."""
    has_generation: bool = True
    """Whether metadata.generation counts the changes outside metadata and status."""
    keeps_status: bool = False
    """Whether a new object keeps the status that its creator gives it, as a Node does, which registers with one."""
    unconditional_update: bool = True
    """Whether a PUT without a resourceVersion is taken."""
    create_on_update: bool = False
    """Whether a PUT of what is not there creates it."""
    grace_seconds: Callable[[Object, int | None], int] | None = None
    """Of a kind that ends gracefully: the seconds that the object gets, of it and of those asked for."""
    resets: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """By subresource ("" is the object): the paths that a write there does not own, such as ``("status",)``."""
    fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """What a field selector may ask for, besides metadata.name and metadata.namespace."""
    stored_fields: Mapping[str, str] = field(default_factory=dict)
    """By what name a field of a selector is found where objects are kept in another version."""


@dataclass(frozen=True, kw_only=True)
class Subresource:
    """One subresource: the kind that its body has, and its verbs."""

    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]
    schema: Schema | None = None
    """Of a body with a kind of its own (Scale, Eviction, Binding, TokenRequest); None where it is the object itself."""


@dataclass(frozen=True, kw_only=True)
class ScalePaths:
    """Where a scale subresource finds its three values in the object."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One kind in one version."""

    group: str
    version: str
    kind: str
    resource: str
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    schema: Schema
    storage: str
    """The name under which all versions of the kind are stored: ``pods``, ``deployments.apps``."""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    scale: ScalePaths | None = None
    rules: Rules = Rules()
    to_storage: Callable[[Object], Object] | None = None
    """Converts from this version to the stored one; None where they are alike."""
    from_storage: Callable[[Object], Object] | None = None
    definition: Object | None = None
    """Of a custom kind: its CustomResourceDefinition."""
    read: Callable[[Object, list[str]], Object] | None = None
    """Of a custom kind: brings a body into its normal form, with its defaults, and names the fields that it drops."""

    @property
    def api_version(self) -> str:
        """The group and version as objects carry them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_custom(self) -> bool:
        """Whether a CustomResourceDefinition made it."""
        return self.definition is not None

    @property
    def has_status(self) -> bool:
        """Whether status is written through a subresource alone."""
        return "status" in self.subresources
