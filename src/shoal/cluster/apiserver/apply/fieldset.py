"""Sets of fields as trees of plain dicts, in the very form of fieldsV1, so that reading and writing them costs nothing.

A key is a path element. A branch that is empty is a member; a branch with children is a member too where it holds
``.``. The root is never a member: an empty root is the empty set. Trees are never changed once they are made, so
that they may share branches; every function here returns a new tree, or the old one where nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.cluster.apiserver.apply.elements import Untypeable, normal, order

Tree = dict[str, Any]


def tree_of(paths: Iterable[tuple[str, ...]]) -> Tree:
    """The set of these paths, each of field names."""
    root: Tree = {}
    for path in paths:
        single: Tree = {}
        for name in reversed(path):
            single = {f"f:{name}": single}
        root = union(root, single) if root else single
    return root


def union(one: Tree, other: Tree) -> Tree:
    """The fields of either; of two roots or of two branches."""
    out = dict(one) if one else {".": {}}
    if not other:
        out["."] = {}
    for label, branch in other.items():
        held = out.get(label)
        if held is None:
            out[label] = branch
        elif label != "." and held != branch:
            out[label] = union(held, branch)
    return out


def joined(one: Tree, other: Tree) -> Tree:
    """The fields of either of two roots, which may be empty."""
    if not one:
        return other
    return union(one, other) if other else one


def difference(whole: Tree, other: Tree) -> Tree:
    """The root without those of its fields that the other root holds itself; fields below those stay."""
    return _children_without(whole, other) if other else whole


def recursive_difference(whole: Tree, other: Tree) -> Tree:
    """The root without the fields that the other root holds, and without all that is below those."""
    out = whole
    for label, cut in other.items():
        branch = whole.get(label)
        if branch is None:
            continue
        kept: Tree | None = None
        if cut and "." not in cut:
            kept = _as_branch(recursive_difference(branch, cut)) if branch else branch
            if kept is branch:
                continue
        out = _replaced(out, whole, label, kept)
    return out


def intersection(one: Tree, other: Tree) -> Tree:
    """The fields of both roots."""
    out: Tree = {}
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    for label, branch in small.items():
        counterpart = large.get(label)
        if counterpart is None or label == ".":
            continue
        common = intersection(branch, counterpart)
        if (not branch or "." in branch) and (not counterpart or "." in counterpart):
            if common:
                common["."] = {}
            out[label] = common
        elif common:
            out[label] = common
    return out


def contains(root: Tree, path: tuple[str, ...]) -> bool:
    """Whether the path is a member of the set."""
    branch: Tree | None = root
    for label in path:
        branch = branch.get(label) if branch else None
        if branch is None:
            return False
    return branch is not None and (not branch or "." in branch)


def paths(root: Tree, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The members of a set in Kubernetes' order: at each step those right here, then those further down."""
    labels = sorted((label for label in root if label != "."), key=order)
    for label in labels:
        branch = root[label]
        if not branch or "." in branch:
            yield (*prefix, label)
    for label in labels:
        if root[label]:
            yield from paths(root[label], (*prefix, label))


def parsed(fields: Any) -> Tree:
    """A set as a client wrote it, in normal form; raises Untypeable for what is none."""
    if fields is None:
        return {}
    tree = _parsed_branch(fields)
    tree.pop(".", None)
    return tree


def _parsed_branch(fields: Any) -> Tree:
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise Untypeable("expected an object")
    out: Tree = {}
    is_member = False
    for label, below in fields.items():
        if label == ".":
            is_member = True
            continue
        element = normal(label)
        if element is not None:
            out[element] = _parsed_branch(below)
    if out and is_member:
        return {".": {}, **out}
    return out


def _children_without(whole: Tree, other: Tree) -> Tree:
    out = whole
    for label, cut in other.items():
        branch = whole.get(label)
        if branch is None or label == ".":
            continue
        kept = _branch_without(branch, cut)
        if kept is not branch:
            out = _replaced(out, whole, label, kept)
    return out


def _branch_without(branch: Tree, cut: Tree) -> Tree | None:
    loses_itself = not cut or "." in cut
    if not branch:
        return None if loses_itself else branch
    kept = _children_without(branch, cut) if cut else branch
    if loses_itself and "." in kept:
        return {label: below for label, below in kept.items() if label != "."} or None
    return _as_branch(kept)


def _as_branch(left: Tree) -> Tree | None:
    """What is left of a branch with children: nothing, a plain member where only its own mark is left, or itself."""
    if not left:
        return None
    return {} if len(left) == 1 and "." in left else left


def _replaced(out: Tree, whole: Tree, label: str, branch: Tree | None) -> Tree:
    """The changed copy of a tree with one more branch changed, or gone."""
    if out is whole:
        out = dict(whole)
    if branch is None:
        del out[label]
    else:
        out[label] = branch
    return out
