"""Field sets that were written under an older schema: what was granular then and is atomic now is owned whole."""

from __future__ import annotations

from shoal.cluster.apiserver.apply.fieldset import Tree
from shoal.cluster.apiserver.apply.shape import LIST, MAP, Shape, is_untyped


def reconciled(shape: Shape, tree: Tree) -> Tree:
    """The set as its owner would have it under the schema of today; the same tree where nothing changed."""
    form = shape.first
    out = tree
    if form is MAP and shape.map is not None:
        map_shape = shape.map
        if is_untyped(map_shape):
            return tree
        if map_shape.is_atomic:
            return _WHOLE
        for label, branch in tree.items():
            if branch and label[0] == "f":
                child = map_shape.child(label[2:])
                if child is not None:
                    out = _replaced(out, tree, label, _below(child, branch))
    elif form is LIST and shape.list is not None:
        if shape.list.is_atomic:
            return _WHOLE
        for label, branch in tree.items():
            if branch:
                out = _replaced(out, tree, label, _below(shape.list.item, branch))
    return out


_WHOLE: Tree = {}


def _below(shape: Shape, branch: Tree) -> Tree:
    return branch if shape.is_leaf and shape.scalar is not None else reconciled(shape, branch)


def _replaced(out: Tree, tree: Tree, label: str, branch: Tree) -> Tree:
    if branch is tree[label]:
        return out
    if out is tree:
        out = dict(tree)
    out[label] = branch or {}
    return out
