"""Names, labels and annotations: what objects, host names and label values are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from shoal.api.grove import CliqueTemplate, PodCliqueSet, ScalingGroupTemplate
from shoal.api.meta.names import (
    GENERATED_SUFFIX_LENGTH,
    dns1035_label_problems,
    dns1123_label_problems,
    dns1123_subdomain_problems,
    label_value_problems,
    qualified_name_problems,
)
from shoal.gangs.admission.rules.places import CLIQUES, GROUPS, clique_at, group_at, repeated
from shoal.kube.admission import FieldProblem, Finding, Warn, invalid, required, too_long

NAME_LIMIT: Final = 45
"""The characters that the names of a set, a scaling group and a clique have together: host names are made from them."""

ANNOTATIONS_LIMIT: Final = 256 * 1024


def name_problems(pcs: PodCliqueSet) -> Iterator[Finding]:
    """Every name is one that objects may have, is there once, and leaves room for what is added to it."""
    template = pcs.spec.template
    if not pcs.metadata.generate_name or pcs.metadata.name:
        yield from _not_dns("metadata.name", pcs.metadata.name)
        yield from _doubts(f'the set\'s name "{pcs.metadata.name}"', pcs.metadata.name, dns1035_label_problems)
    yield from _each_named_once(CLIQUES, template.cliques, "clique")
    yield from _each_named_once(GROUPS, template.pod_clique_scaling_groups, "scaling group")
    yield from _role_problems(pcs)
    yield from _length_problems(pcs)


def metadata_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """Labels and annotations are such as objects may have."""
    for index, clique in enumerate(pcs.spec.template.cliques):
        yield from _label_problems(f"{clique_at(index)}.labels", clique.labels)
        yield from _annotation_problems(f"{clique_at(index)}.annotations", clique.annotations)
    for index, group in enumerate(pcs.spec.template.pod_clique_scaling_groups):
        yield from _annotation_problems(f"{group_at(index)}.annotations", group.annotations)


def _each_named_once(
    place: str, parts: Sequence[CliqueTemplate | ScalingGroupTemplate], what: str
) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, part in enumerate(parts):
        path = f"{place}[{index}].name"
        if not part.name:
            yield required(path, f"name the {what}")
        elif part.name in seen:
            yield repeated(path, part.name, f"name each {what} differently")
        else:
            yield from _not_dns(path, part.name)
            yield from _doubts(f'the name of {what} "{part.name}"', part.name, dns1123_label_problems)
        seen.add(part.name)


def _role_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    seen: dict[str, str] = {}
    for index, clique in enumerate(pcs.spec.template.cliques):
        role = clique.spec.role_name or clique.name
        if role in seen and seen[role] != clique.name:
            path = f"{clique_at(index)}.spec.roleName"
            yield repeated(path, role, f'clique "{seen[role]}" has this role: give each clique one of its own')
        seen.setdefault(role, clique.name)


def _length_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    set_name = pcs.metadata.name or pcs.metadata.generate_name + "x" * GENERATED_SUFFIX_LENGTH
    grouped = {name for group in pcs.spec.template.pod_clique_scaling_groups for name in group.clique_names}
    for index, clique in enumerate(pcs.spec.template.cliques):
        length = len(set_name) + len(clique.name)
        if clique.name not in grouped and length > NAME_LIMIT:
            yield invalid(
                f"{clique_at(index)}.name",
                clique.name,
                f"the names of the set and the clique have {length} characters together and may have {NAME_LIMIT}: "
                "shorten one of them",
            )
    for index, group in enumerate(pcs.spec.template.pod_clique_scaling_groups):
        for position, name in enumerate(group.clique_names):
            length = len(set_name) + len(group.name) + len(name)
            if length > NAME_LIMIT:
                yield invalid(
                    f"{group_at(index)}.cliqueNames[{position}]",
                    name,
                    f"the names of the set, the scaling group and the clique have {length} characters together and "
                    f"may have {NAME_LIMIT}: shorten one of them",
                )


def _not_dns(path: str, name: str) -> Iterator[FieldProblem]:
    if not name:
        yield required(path, "name the set")
        return
    for problem in dns1123_subdomain_problems(name):
        yield invalid(path, name, problem)


def _doubts(what: str, name: str, problems: Callable[[str], list[str]]) -> Iterator[Warn]:
    """What may be named so, but makes names of Services or host names that are refused."""
    if not dns1123_subdomain_problems(name) and (found := problems(name)):
        yield Warn(f"{what} {found[0]}, or its Service and host names are refused")


def _label_problems(path: str, labels: Mapping[str, str]) -> Iterator[FieldProblem]:
    for key, value in labels.items():
        for problem in qualified_name_problems(key):
            yield invalid(path, key, problem)
        for problem in label_value_problems(value):
            yield invalid(f"{path}[{key}]", value, problem)


def _annotation_problems(path: str, annotations: Mapping[str, str]) -> Iterator[FieldProblem]:
    for key in annotations:
        for problem in qualified_name_problems(key.lower()):
            yield invalid(path, key, problem)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        yield too_long(path, ANNOTATIONS_LIMIT)
