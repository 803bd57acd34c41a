"""What a version states besides its schema: subresources, printer columns, selectable fields."""

from __future__ import annotations

from shoal.cluster.apiserver.custom.field_paths import valid_field_path
from shoal.cluster.apiserver.custom.wording import Problems, Raw
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import duplicate, invalid, required, too_many

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8


def subresource_problems(subresources: Object, path: str) -> Problems:
    """The scale subresource finds its values under spec and status."""
    scale = subresources.get("scale")
    if scale is None:
        return []
    problems: Problems = []
    for field, allowed in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        place, text = f"{path}.scale.{field}", scale.get(field) or ""
        if not text:
            if field != "labelSelectorPath":
                problems.append(required(place))
        elif not text.startswith("."):
            problems.append(invalid(place, text, "must be a simple json path starting with ."))
        elif not text.startswith(allowed):
            told = "either .spec or .status" if len(allowed) == 2 else allowed[0].rstrip(".")
            problems.append(invalid(place, text, f"should be a json path under {told}"))
    return problems


def column_problems(column: Object, path: str) -> Problems:
    """A column has a name, a known type, and a path from the object."""
    problems: Problems = []
    kind, form, text = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    if not column.get("name"):
        problems.append(required(f"{path}.name"))
    if not kind:
        problems.append(required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}"))
    elif kind not in _COLUMN_TYPES:
        problems.append(invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}"))
    if form and form not in _COLUMN_FORMATS:
        problems.append(invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not text:
        problems.append(required(f"{path}.JSONPath"))
    elif not text.startswith("."):
        problems.append(invalid(f"{path}.JSONPath", text, "must be a simple json path starting with ."))
    return problems


def selectable_problems(fields: list[Object], schema: Raw, path: str) -> Problems:
    """Fields that selectors may ask for are scalars that the schema declares, and few."""
    problems: Problems = []
    seen: set[str] = set()
    for at, field in enumerate(fields):
        place, text = f"{path}[{at}].jsonPath", field.get("jsonPath") or ""
        if not text:
            problems.append(required(place))
            continue
        found = valid_field_path(text, schema, allows_brackets=False)
        if found.error or found.schema is None:
            problems.append(invalid(place, text, f"is an invalid path: {found.error}"))
            continue
        if found.path.partition(".")[0] == "metadata":
            problems.append(invalid(place, text, "must not point to fields in metadata"))
        if found.schema.get("type") not in ("string", "boolean", "integer"):
            told = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            problems.append(invalid(place, text, told))
        if found.path in seen:
            problems.append(duplicate(place, text))
        seen.add(found.path)
    if len(seen) > _MOST_SELECTABLE:
        problems.append(too_many(path, len(seen), _MOST_SELECTABLE))
    return problems
