"""What a client wants to read: the whole object, its metadata alone, or a table; as JSON or YAML."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache

from shoal.cluster.apiserver.refusals import not_acceptable, not_producible

_META = "meta.k8s.io"
KNOWN = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
STREAMED = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


class Form(enum.Enum):
    """How an object is shown."""

    WHOLE = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to show objects; hashable, since encodings are shared by all who ask for the same one."""

    form: Form = Form.WHOLE
    version: str = "v1"
    is_yaml: bool = False
    include: str = "Metadata"
    """What a table's rows carry of their objects: None, Metadata or Object."""

    @property
    def is_metadata(self) -> bool:
        """Whether objects are shown by their metadata alone."""
        return self.form in (Form.METADATA, Form.METADATA_LIST)


@lru_cache(maxsize=1024)
def negotiated(accept: str, *, tables: bool = True) -> Representation:
    """The first wish of an Accept header that can be met; raises Refused where none can."""
    if not accept.strip():
        return Representation()
    for wish in _by_weight(accept):
        media, parameters = _parts(wish)
        is_json = media in ("application/json", "*/*", "application/*")
        is_yaml = media == "application/yaml"
        if not is_json and not is_yaml:
            continue
        form = parameters.get("as")
        if form is None:
            return Representation(is_yaml=is_yaml)
        version = parameters.get("v", "v1")
        if (tables or form != Form.TABLE.value) and parameters.get("g") == _META and version in ("v1", "v1beta1"):
            try:
                return Representation(Form(form), version, is_yaml)
            except ValueError:
                continue
    raise not_acceptable(KNOWN)


@lru_cache(maxsize=1024)
def check_producible(accept: str, produced: tuple[str, ...] = KNOWN) -> None:
    """Refuses whoever takes none of the media types that come from there, whatever their parameters."""
    taken = {wish.partition(";")[0].strip() for wish in accept.split(",")}
    if accept.strip() and "*/*" not in taken and taken.isdisjoint(produced):
        raise not_producible(produced)


def _by_weight(accept: str) -> list[str]:
    wishes = [wish.strip() for wish in accept.split(",") if wish.strip()]

    def weight(wish: str) -> float:
        try:
            return -float(_parts(wish)[1].get("q", "1"))
        except ValueError:
            return 0.0

    return sorted(wishes, key=weight)


def _parts(wish: str) -> tuple[str, dict[str, str]]:
    media, *rest = (part.strip() for part in wish.split(";"))
    pairs = (part.partition("=") for part in rest)
    return media.lower(), {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
