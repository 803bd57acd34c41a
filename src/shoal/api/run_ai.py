"""run.ai: Kartas, which say of a kind of workload what it is made of and how its pods belong together.

Karta's own chart installs the kind; here it is read, as far as grouping pods needs it. Paths are expressions of jq.
"""

from __future__ import annotations

from typing import Any, Final

from shoal.api.meta import Object, Resource, Wire

GROUP: Final = "run.ai"

KARTA_GROUP: Final = "run.ai/karta-group"
KARTA_VERSION: Final = "run.ai/karta-version"
KARTA_KIND: Final = "run.ai/karta-kind"
"""Labels by which the definition of a kind is found."""


class KartaKind(Wire, frozen=True, kw_only=True):
    """A kind in one version."""

    group: str = ""
    version: str = ""
    kind: str = ""


class KartaSpecDefinition(Wire, frozen=True, kw_only=True):
    """Where a component describes its pods: one of the three."""

    pod_template_spec_path: str | None = None
    pod_spec_path: str | None = None
    fragmented_pod_spec_definition: dict[str, Any] | None = None


class KartaScaleDefinition(Wire, frozen=True, kw_only=True):
    """Where a component says how many replicas it has."""

    replicas_path: str | None = None
    min_replicas_path: str | None = None


class KartaTypeSelector(Wire, frozen=True, kw_only=True):
    """What a pod of a component has, and with which value; any value will do where none is named."""

    key_path: str = ""
    value: str | None = None


class KartaInstanceSelector(Wire, frozen=True, kw_only=True):
    """Where a pod names the instance of its component."""

    id_path: str = ""


class KartaPodSelector(Wire, frozen=True, kw_only=True):
    """How the pods of a component are known."""

    component_type_selector: KartaTypeSelector | None = None
    component_instance_selector: KartaInstanceSelector | None = None


class KartaComponent(Wire, frozen=True, kw_only=True):
    """One part of a workload."""

    name: str = ""
    kind: KartaKind | None = None
    owner_ref: str | None = None
    spec_definition: KartaSpecDefinition | None = None
    scale_definition: KartaScaleDefinition | None = None
    status_definition: dict[str, Any] | None = None
    instance_id_path: str | None = None
    pod_selector: KartaPodSelector | None = None


class KartaStructure(Wire, frozen=True, kw_only=True):
    """What a workload is made of."""

    root_component: KartaComponent = KartaComponent()
    child_components: list[KartaComponent] = []


class KartaTopology(Wire, frozen=True, kw_only=True):
    """How close together pods run."""

    topology_name: str = ""
    preferred_topology_level: str = ""
    required_topology_level: str = ""


class KartaSubGroup(Wire, frozen=True, kw_only=True):
    """A component that is a part of the group."""

    component_name: str = ""
    topology: KartaTopology | None = None


class KartaPodGroup(Wire, frozen=True, kw_only=True):
    """One group for the whole workload."""

    name: str = ""
    sub_groups: list[KartaSubGroup] = []
    topology: KartaTopology | None = None


class KartaMember(Wire, frozen=True, kw_only=True):
    """A component whose pods are in a group, as far as they pass all filters; one group for each value of the keys."""

    component_name: str = ""
    group_by_key_paths: list[str] = []
    filters: list[str] = []


class KartaMemberGroup(Wire, frozen=True, kw_only=True):
    """Components whose pods are in groups, in the older form."""

    name: str = ""
    members: list[KartaMember] = []


class KartaGangScheduling(Wire, frozen=True, kw_only=True):
    """Which pods start together; ``pod_group`` goes before ``pod_groups``, the older form."""

    pod_group: KartaPodGroup | None = None
    pod_groups: list[KartaMemberGroup] = []


class KartaInstructions(Wire, frozen=True, kw_only=True):
    """What is to be done with a workload."""

    gang_scheduling: KartaGangScheduling | None = None


class KartaSpec(Wire, frozen=True, kw_only=True):
    """A kind of workload."""

    structure_definition: KartaStructure = KartaStructure()
    optimization_instructions: KartaInstructions = KartaInstructions()


class Karta(Object, frozen=True, kw_only=True):
    """The definition of a kind of workload."""

    spec: KartaSpec = KartaSpec()


KARTAS: Final = Resource(type=Karta, group=GROUP, version="v1alpha1", kind="Karta", plural="kartas", namespaced=False)
