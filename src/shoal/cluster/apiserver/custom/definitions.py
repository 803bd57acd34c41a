"""CustomResourceDefinitions: what they are completed with, and what must hold for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.cluster.apiserver.builtin.names import dns1035_problems, subdomain_problems
from shoal.cluster.apiserver.cel.formats import FORMATS
from shoal.cluster.apiserver.custom.conversion import conversion_problems
from shoal.cluster.apiserver.custom.default_rules import default_problems
from shoal.cluster.apiserver.custom.definition_status import (
    APPROVAL,
    approval_state,
    is_protected_group,
    stored_versions,
)
from shoal.cluster.apiserver.custom.rule_types import rule_type
from shoal.cluster.apiserver.custom.schema_rules import Context, schema_problems
from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.custom.structural import children, structural_problems, unsupported_keyword
from shoal.cluster.apiserver.custom.text import go_json, quoted
from shoal.cluster.apiserver.custom.version_parts import column_problems, selectable_problems, subresource_problems
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import (
    FieldProblem,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
"""The name under which definitions are stored."""

_AT_ROOT = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum"),
    *("MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items"),
    *("Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)
_ALLOWED_AT_ROOT = frozenset(
    {each[0].lower() + each[1:] for each in _AT_ROOT}
    | {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}
)


def default_definition(definition: Object) -> None:
    """Fills in the names that follow from others, the conversion, and the version that is stored."""
    spec = definition.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if not names.get("singular"):
        names["singular"] = (names.get("kind") or "").lower()
    if not names.get("listKind") and names.get("kind"):
        names["listKind"] = f"{names['kind']}List"
    conversion = spec.get("conversion")
    if not conversion:
        spec["conversion"] = {"strategy": "None"}
    else:
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service and service.get("port") is None:
            service["port"] = 443
    status = definition.setdefault("status", {})
    if not status.get("storedVersions"):
        status["storedVersions"] = stored_versions(definition)


def definition_name_problems(definition: Object, name: str) -> list[str]:
    """What keeps a text from naming a definition."""
    names = (definition.get("spec") or {}).get("names") or {}
    problems = subdomain_problems(name)
    if name != f"{names.get('plural', '')}.{definition['spec'].get('group', '')}":
        problems = [*problems, 'must be spec.names.plural+"."+spec.group']
    return problems


def validate_definition(definition: Object) -> list[FieldProblem]:
    """What is wrong with a new definition; of its metadata, only its name is looked at."""
    name = (definition.get("metadata") or {}).get("name") or ""
    problems: Problems = []
    if name and name != _expected_name(definition):
        problems.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    problems += _spec_problems(definition["spec"])
    problems += _stored_version_problems(definition)
    problems += _approval_problems(definition, None)
    problems += _preserve_problems(definition, None)
    return problems


def validate_definition_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with the change of a definition."""
    problems = _spec_problems(new["spec"], old["spec"])
    is_established = any(
        each.get("type") == "Established" and each.get("status") == "True"
        for each in (old.get("status") or {}).get("conditions") or ()
    )
    fields = [("group",), ("names", "plural")]
    if is_established:
        fields = [("scope",), ("names", "kind"), *fields]
    for field in fields:
        value, before = _at(new["spec"], field), _at(old["spec"], field)
        if value != before:
            problems.append(immutable(".".join(("spec", *field)), value))
    problems += _stored_version_problems(new)
    problems += _approval_problems(new, old)
    problems += _preserve_problems(new, old)
    return problems


def definition_warnings(definition: Object) -> list[str]:
    """Formats that mean nothing here."""
    unknown: dict[str, None] = {}
    for version in definition["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema:
            unknown |= dict.fromkeys(_unknown_formats(schema))
    return [f"unrecognized format {quoted(each)}" for each in unknown]


@by_content
def _unknown_formats(raw: Raw) -> tuple[str, ...]:
    form, named = raw.get("format") or "", raw.get("type") or ""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}
    is_known = form.replace("-", "") in FORMATS if named in ("", "string") else form in known.get(named, ())
    below = [each for _, child in children(raw) for each in _unknown_formats(child)]
    return tuple(dict.fromkeys(below if is_known or not form else [form, *below]))


def _expected_name(definition: Object) -> str:
    spec = definition["spec"]
    return f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"


def _at(value: Any, field: Sequence[str]) -> Any:
    for name in field:
        value = (value or {}).get(name)
    return value or ""


def _spec_problems(spec: Object, old: Object | None = None) -> Problems:
    problems = _group_problems(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        problems.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        problems.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    versions: list[Object] = spec.get("versions") or []
    if spec.get("preserveUnknownFields") and any(_has_defaults(_schema_of(each)) for each in versions):
        told = "must be false in order to use defaults in the schema"
        problems.append(invalid("spec.preserveUnknownFields", True, told))
    for at, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            problems.append(required(f"spec.versions[{at}].schema.openAPIV3Schema"))
    is_shared = {field: _is_shared(versions, field) for field in _PER_VERSION}
    for at, version in enumerate(versions):
        faults = dns1035_problems(version.get("name") or "")
        if faults:
            problems.append(invalid(f"spec.versions[{at}].name", version.get("name") or "", ",".join(faults)))
        problems += _deprecation_problems(version, f"spec.versions[{at}]")
        own = {field: value for field, value in version.items() if not is_shared.get(field)}
        problems += _version_problems(own, f"spec.versions[{at}]", version)
    problems += _version_list_problems(versions)
    first = (versions[0].get("name") or "") if versions else ""
    if first and (faults := dns1035_problems(first)):
        problems.append(invalid("spec.version", first, ",".join(faults)))
    problems += _required_names(spec.get("names") or {})
    problems += name_problems(spec.get("names") or {}, "spec.names")
    if versions:
        shared = {field: versions[0][field] for field in _PER_VERSION if is_shared[field]}
        problems += _version_problems(shared, "spec", versions[0])
    problems += conversion_problems(spec.get("conversion"), (old or {}).get("conversion"))
    return problems


def _schema_of(version: Object) -> Raw:
    schema: Raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _has_defaults(raw: Raw) -> bool:
    return raw.get("default") is not None or any(_has_defaults(child) for _, child in children(raw))


_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _is_shared(versions: list[Object], field: str) -> bool:
    """Whether all versions say the same of something; then problems are told of the definition, not of a version."""
    return bool(versions) and all(each.get(field) and each[field] == versions[0].get(field) for each in versions)


def _group_problems(group: str) -> Problems:
    if not group:
        return [required("spec.group")]
    faults = subdomain_problems(group)
    if faults:
        return [invalid("spec.group", group, ",".join(faults))]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _deprecation_problems(version: Object, path: str) -> Problems:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    place = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        return [invalid(place, warning, "can only be set for deprecated versions")]
    problems: Problems = []
    if len(warning.encode()) > 256:
        problems.append(invalid(place, warning, "must be <= 256 characters long"))
    if not warning:
        problems.append(invalid(place, warning, "must not be an empty string"))
    for at, letter in enumerate(warning):
        if not letter.isprintable():
            told = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            problems.append(invalid(place, warning, told))
            break
    return problems


def _version_problems(parts: Object, path: str, version: Object) -> Problems:
    """The parts that a version, or all versions together, state: schema, subresources, columns, selectable fields."""
    problems: Problems = []
    schema = (parts.get("schema") or {}).get("openAPIV3Schema")
    if schema:
        place = f"{path}.validation" if path == "spec" else f"{path}.schema"
        has_status = "status" in (version.get("subresources") or {})
        problems += _schema_problems(schema, f"{place}.openAPIV3Schema", has_status=has_status)
    problems += subresource_problems(parts.get("subresources") or {}, f"{path}.subresources")
    for at, column in enumerate(parts.get("additionalPrinterColumns") or ()):
        problems += column_problems(column, f"{path}.additionalPrinterColumns[{at}]")
    whole = _schema_of(version)
    if parts.get("selectableFields") and not whole:
        told = "may only be set when validations.schema is included"
        problems.append(invalid(f"{path}.selectableFields", "", told))
    elif parts.get("selectableFields"):
        problems += selectable_problems(parts["selectableFields"], whole, f"{path}.selectableFields")
    return problems


def _schema_problems(schema: Raw, path: str, *, has_status: bool) -> Problems:
    problems: Problems = []
    if has_status:
        problems += _root_problems(schema, path)
    if schema.get("nullable"):
        problems.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    unsupported = unsupported_keyword(schema)
    found = [] if unsupported else structural_problems(schema, path) or default_problems(schema, path, is_root=True)
    problems += found
    context = Context(compiles=not (unsupported or found))
    given = rule_type(schema, is_resource=True)
    all_found = schema_problems(schema, path, context, is_root=True, given=given)
    problems += all_found.schema + all_found.rules
    if not problems and unsupported:
        problems.append(FieldProblem(path, unsupported, value=""))
    return problems


def _root_problems(schema: Raw, path: str) -> Problems:
    if schema.get("type") not in (None, "", "object"):
        told = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [invalid(f"{path}.type", schema["type"], told)]
    if all(key in _ALLOWED_AT_ROOT for key, value in schema.items() if value):
        return []
    listed = " ".join(_AT_ROOT)
    told = f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled"
    return [invalid(path, go_json(schema), told)]


def _version_list_problems(versions: list[Object]) -> Problems:
    problems: Problems = []
    names = [each.get("name") for each in versions]
    if len(set(names)) != len(names):
        problems.append(invalid("spec.versions", _shown_versions(versions), "must contain unique version names"))
    if sum(bool(each.get("storage")) for each in versions) != 1:
        told = "must have exactly one version marked as storage version"
        problems.append(invalid("spec.versions", _shown_versions(versions), told))
    return problems


def _shown_versions(versions: list[Object]) -> msgspec.Raw:
    shown = [
        {
            "Name": each.get("name") or "",
            "Served": bool(each.get("served")),
            "Storage": bool(each.get("storage")),
            "Deprecated": bool(each.get("deprecated")),
            "DeprecationWarning": each.get("deprecationWarning"),
            "Schema": None,
            "Subresources": None,
            "AdditionalPrinterColumns": None,
            "SelectableFields": None,
        }
        for each in versions
    ]
    return go_json(shown)


def _required_names(names: Object) -> Problems:
    return [
        required(f"spec.names.{field}") for field in ("plural", "singular", "kind", "listKind") if not names.get(field)
    ]


def name_problems(names: Object, path: str) -> Problems:
    """What is wrong with the names that a definition asks for, or has got."""
    problems: Problems = []
    for field in ("plural", "singular", "kind", "listKind"):
        text = names.get(field) or ""
        is_kind = field in ("kind", "listKind")
        faults = dns1035_problems(text.lower() if is_kind else text) if text else []
        if faults:
            told = "may have mixed case, but should otherwise match: " if is_kind else ""
            problems.append(invalid(f"{path}.{field}", text, told + ",".join(faults)))
    problems += _listed_name_problems(names, "shortNames", path)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        problems.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return problems + _listed_name_problems(names, "categories", path)


def _listed_name_problems(names: Object, field: str, path: str) -> Problems:
    found = ((at, text, dns1035_problems(text)) for at, text in enumerate(names.get(field) or ()))
    return [invalid(f"{path}.{field}[{at}]", text, ",".join(faults)) for at, text, faults in found if faults]


def _stored_version_problems(definition: Object) -> Problems:
    stored = (definition.get("status") or {}).get("storedVersions")
    if stored is None:
        return []
    versions = definition["spec"].get("versions") or ()
    names = [each.get("name") for each in versions]
    kept = [each.get("name") for each in versions if each.get("storage")]
    problems: Problems = []
    if not stored:
        problems.append(invalid("status.storedVersions", None, "must have at least one stored version"))
        return problems
    for version in versions:
        if version.get("storage") and (version.get("name") not in stored or kept.count(version.get("name")) > 1):
            told = f"must have the storage version {version.get('name')}"
            problems.append(invalid("status.storedVersions", stored, told))
    for at, name in enumerate(stored):
        if name not in names:
            told = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            problems.append(invalid(f"status.storedVersions[{at}]", name, told))
    return problems


def _approval_problems(new: Object, old: Object | None) -> Problems:
    if not is_protected_group(new["spec"].get("group") or ""):
        return []
    state, told = approval_state(new)
    if state in ("Approved", "Bypassed") or (old is not None and approval_state(old)[0] == state):
        return []
    path = f"metadata.annotations[{APPROVAL}]"
    if state == "Missing":
        return [required(path, told)]
    return [invalid(path, new["metadata"]["annotations"][APPROVAL], told)]


def _preserve_problems(new: Object, old: Object | None) -> Problems:
    if not new["spec"].get("preserveUnknownFields") or (old or {}).get("spec", {}).get("preserveUnknownFields"):
        return []
    told = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid("spec.preserveUnknownFields", True, told)]
