"""Pod templates and patches of them, at random, from few names: most of a patch meets something that is there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

VOLUMES = ("v0", "v1", "v2")


def _some(names: tuple[str, ...], *, least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=least, unique=True)


def _each(names: list[str], part: Any) -> st.SearchStrategy[list[Any]]:
    return st.tuples(*(part(name) for name in names)).map(list)


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


words = st.sampled_from(["x", "y", "z"])
labels = st.dictionaries(st.sampled_from(["a", "b", "c"]), words, min_size=1, max_size=3)


def _variable(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": st.just(name), "value": words})


environments = _some(("A", "B", "C", "D")).flatmap(lambda names: _each(names, _variable))


def _mount(path: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"mountPath": st.just(path), "name": st.sampled_from(VOLUMES)}, optional={"subPath": words}
    )


mounts = _some(("/a", "/b", "/c", "/d")).flatmap(lambda paths: _each(paths, _mount))
tolerations = st.lists(words.map(lambda key: {"key": key, "operator": "Exists"}), max_size=2)
gates = _some(("example.com/a", "example.com/b", "example.com/c")).map(lambda names: [{"name": name} for name in names])
secrets = _some(("s", "t", "u")).map(lambda names: [{"name": name} for name in names])
contexts = _optional(runAsUser=st.integers(1, 3), runAsGroup=st.integers(1, 3))
finalizers = _some(("example.com/a", "example.com/b", "example.com/c"))


def _volume(name: str) -> st.SearchStrategy[dict[str, Any]]:
    source = st.fixed_dictionaries({"name": words}, optional={"optional": st.booleans()})
    return st.fixed_dictionaries({"name": st.just(name), "configMap": source})


def _container_patch(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"name": st.just(name)}, optional={"env": environments, "volumeMounts": mounts, "securityContext": contexts}
    )


def _container(name: str) -> st.SearchStrategy[dict[str, Any]]:
    fixed = {"image": "i", "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    return _container_patch(name).map(lambda patch: {**fixed, **patch})


def _affinity(zone: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _scheduling() -> dict[str, st.SearchStrategy[Any]]:
    return {
        "nodeSelector": labels,
        "tolerations": tolerations,
        "schedulingGates": gates,
        "imagePullSecrets": secrets,
        "securityContext": contexts,
        "affinity": words.map(_affinity),
        "terminationGracePeriodSeconds": st.integers(0, 3),
    }


def _metadata() -> st.SearchStrategy[dict[str, Any]]:
    return _optional(labels=labels, annotations=labels, finalizers=finalizers)


def _spec(container: Any, *, least: int, volumes: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    containers = _some(("node", "side", "extra"), least=least).flatmap(lambda names: _each(names, container))
    init_containers = _some(("first", "second")).flatmap(lambda names: _each(names, container))
    required = {"containers": containers, "volumes": volumes}
    return st.fixed_dictionaries(required, optional={"initContainers": init_containers, **_scheduling()})


templates = st.fixed_dictionaries(
    {
        "metadata": _metadata(),
        "spec": _spec(
            _container, least=3, volumes=st.permutations(VOLUMES).flatmap(lambda names: _each(list(names), _volume))
        ).map(lambda spec: {**spec, "initContainers": [_whole("first"), _whole("second")]}),
    }
)
"""Templates with all containers and volumes that a patch may name, so that it never makes one of half its fields."""


def _whole(name: str) -> dict[str, Any]:
    return {"name": name, "image": "i", "env": [{"name": "B", "value": "x"}, {"name": "D", "value": "x"}]}


template_patches = st.fixed_dictionaries(
    {},
    optional={
        "metadata": _metadata(),
        "spec": _spec(
            _container_patch, least=0, volumes=_some((*VOLUMES, "v3")).flatmap(lambda names: _each(names, _volume))
        ),
    },
)
"""What a TrainJob may change of a template; nothing, too."""


def directed(value: dict[str, Any], directive: str) -> dict[str, Any]:
    """The same with a directive where maps of labels are."""
    changed = {key: directed(inner, directive) if isinstance(inner, dict) else inner for key, inner in value.items()}
    for field in ("labels", "annotations", "nodeSelector"):
        if field in changed:
            changed[field] = {**changed[field], "$patch": directive}
    return changed
