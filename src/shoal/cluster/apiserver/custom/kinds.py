"""The kinds that a definition makes: one for each of its versions."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from shoal.cluster.apiserver.builtin.names import subdomain_problems
from shoal.cluster.apiserver.custom.json_path import InvalidPath, compile_path
from shoal.cluster.apiserver.custom.pipeline import Pipeline
from shoal.cluster.apiserver.custom.scale import scale_path
from shoal.cluster.apiserver.custom.shapes import object_schema
from shoal.cluster.apiserver.custom.text import go_number
from shoal.cluster.apiserver.kinds.kind import Kind, Object, Rules, ScalePaths, Subresource
from shoal.cluster.apiserver.refusals import internal_error

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_PART_VERBS = ("get", "patch", "update")
_ANYTHING: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def kinds_of(definition: Object) -> tuple[Kind, ...]:
    """One kind for each version, served or not, in the definition's order; names are those that were accepted."""
    versions = definition["spec"]["versions"]
    pipelines = {version["name"]: _pipeline(definition, version) for version in versions}
    stored = next((version["name"] for version in versions if version.get("storage")), versions[0]["name"])
    return tuple(_kind(definition, version, pipelines, stored) for version in versions)


def deprecation_warning(definition: Object, version: str) -> str:
    """What clients of a version are warned of; empty where it is not deprecated."""
    for each in definition["spec"]["versions"]:
        if each["name"] == version and each.get("deprecated"):
            told = f"{definition['spec']['group']}/{version} {definition['spec']['names']['kind']} is deprecated"
            return each.get("deprecationWarning") or told
    return ""


def _pipeline(definition: Object, version: Object) -> Pipeline:
    """The pipeline of a version; one that is in use already where nothing differs that it depends on."""
    spec = definition["spec"]
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING
    options = {
        "kind": spec["names"]["kind"],
        "version": version["name"],
        "scale": (version.get("subresources") or {}).get("scale"),
        "keeps_unknown": bool(spec.get("preserveUnknownFields")),
    }
    content = sha256(msgspec.json.encode((schema, options))).digest()
    found = _IN_USE.get(content)
    if found is None:
        found = _IN_USE[content] = Pipeline(schema, **options)
    return found


_IN_USE: WeakValueDictionary[bytes, Pipeline] = WeakValueDictionary()


def _kind(definition: Object, version: Object, pipelines: dict[str, Pipeline], stored: str) -> Kind:
    spec, name = definition["spec"], version["name"]
    names = {**spec["names"], **((definition.get("status") or {}).get("acceptedNames") or {})}
    names = {**spec["names"], **{key: value for key, value in names.items() if value}}
    group, kind = spec["group"], names["kind"]
    parts = version.get("subresources") or {}
    subresources: dict[str, Subresource] = {}
    if "status" in parts:
        subresources["status"] = Subresource(group=group, version=name, kind=kind, verbs=_PART_VERBS)
    scale = parts.get("scale")
    if scale:
        subresources["scale"] = Subresource(group="autoscaling", version="v1", kind="Scale", verbs=_PART_VERBS)
    pipeline = pipelines[name]
    to_storage, from_storage = _conversions(spec, pipelines, name, stored)
    return Kind(
        group=group,
        version=name,
        kind=kind,
        resource=names["plural"],
        singular=names.get("singular") or kind.lower(),
        list_kind=names.get("listKind") or f"{kind}List",
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=VERBS,
        schema=object_schema(pipeline.raw),
        storage=f"{names['plural']}.{group}",
        subresources=subresources,
        scale=_scale_paths(scale) if scale else None,
        rules=_rules(pipeline, version, has_status="status" in parts),
        to_storage=to_storage,
        from_storage=from_storage,
        definition=definition,
        read=pipeline.read,
    )


def _scale_paths(scale: Object) -> ScalePaths:
    selector = scale.get("labelSelectorPath")
    return ScalePaths(
        spec_replicas=scale_path(scale["specReplicasPath"]),
        status_replicas=scale_path(scale["statusReplicasPath"]),
        selector=scale_path(selector) if selector else (),
    )


def _rules(pipeline: Pipeline, version: Object, *, has_status: bool) -> Rules:
    resets: dict[str, tuple[tuple[str, ...], ...]] = {"status": (("metadata",), ("spec",))} if has_status else {}
    if has_status:
        resets[""] = (("status",),)
    return Rules(
        name_problems=subdomain_problems,
        defaults=pipeline.default,
        prepare_status=_keep_metadata,
        validate_create=pipeline.validate,
        validate_update=pipeline.validate,
        validate_status=pipeline.validate_status,
        unconditional_update=False,
        resets=resets,
        fields={
            field["jsonPath"].removeprefix("."): _selected(field["jsonPath"])
            for field in version.get("selectableFields") or ()
        },
    )


def _keep_metadata(new: Object, old: Object) -> None:
    """A write of the status changes nothing else, but for who owns what."""
    kept = dict(old["metadata"])
    if "managedFields" in new["metadata"]:
        kept["managedFields"] = new["metadata"]["managedFields"]
    new["metadata"] = kept


def _selected(path: str) -> Callable[[Object], str]:
    try:
        find = compile_path(path)
    except InvalidPath:
        return lambda _value: ""

    def text(value: Object) -> str:
        found = find(value)
        first = found[0] if found else None
        if first is None:
            return ""
        if isinstance(first, bool):
            return "true" if first else "false"
        return go_number(first) if isinstance(first, int | float) else str(first)

    return text


Convert = Callable[[Object], Object]


def _conversions(
    spec: Object, pipelines: dict[str, Pipeline], name: str, stored: str
) -> tuple[Convert | None, Convert | None]:
    """How objects go to the stored version and back: nothing changes but what a version's schema does not know."""
    if name == stored:
        return None, None
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        told = (
            f"conversion webhook for {spec['group']}/{stored}, Kind={spec['names']['kind']} failed: not supported here"
        )

        def refuse(_value: Object) -> Object:
            raise internal_error(told)

        return refuse, refuse
    if pipelines[name].raw == pipelines[stored].raw:
        return None, None
    return _converted(pipelines[stored]), _converted(pipelines[name])


def _converted(pipeline: Pipeline) -> Convert:
    def convert(value: Object) -> Object:
        pipeline.default(value)
        pipeline.prune(value)
        return value

    return convert
