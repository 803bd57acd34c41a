"""The answer to an apply that would change what others own."""

from __future__ import annotations

from shoal.cluster.apiserver.apply.elements import quoted, shown
from shoal.cluster.apiserver.apply.entries import UPDATE, Owner
from shoal.cluster.apiserver.apply.fieldset import Tree, paths
from shoal.cluster.apiserver.refusals import Refused, apply_conflict
from shoal.kube.errors import Cause


def conflict_refusal(conflicts: dict[Owner, Tree]) -> Refused:
    """409, with a cause for each field and its owner."""
    found = [(_named(owner), _path(path)) for owner in sorted(conflicts) for path in paths(conflicts[owner])]
    causes = [
        Cause(reason="FieldManagerConflict", message=f"conflict with {manager}", field=path) for manager, path in found
    ]
    if len(found) == 1:
        manager, path = found[0]
        return apply_conflict(causes, f"Apply failed with 1 conflict: conflict with {manager}: {path}")
    lines: list[str] = []
    for owner in sorted(conflicts):
        lines.append(f"conflicts with {_named(owner)}:")
        lines += [f"- {_path(path)}" for path in paths(conflicts[owner])]
    return apply_conflict(causes, f"Apply failed with {len(found)} conflicts: " + "\n".join(lines))


def _named(owner: Owner) -> str:
    manager, operation, version, subresource = owner
    text = quoted(manager)
    if subresource:
        text += f" with subresource {quoted(subresource)}"
    return f"{text} using {version}" if operation == UPDATE else text


def _path(path: tuple[str, ...]) -> str:
    return "".join(map(shown, path))
