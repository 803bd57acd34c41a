"""The values that the store keeps and tells: an object's state as bytes, and a change from one state to the next."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping

import msgspec


class ChangeType(enum.Enum):
    """What happened to an object, or to its place in a selection; the values are the wire's."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """An object as its writer hands it over, once its revision is known."""

    data: bytes
    """A JSON object without apiVersion and kind, with its metadata.resourceVersion."""
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    """What field selectors ask for beside name and namespace, which the record has: so equal ones can be shared."""
    uid: str


# There may be 100,000 of them and they can form no cycles, so the garbage collector need not look at them.
class Record(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One state of one object. States are compared by identity: each is made once."""

    namespace: str
    name: str
    revision: int
    data: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    uid: str


class Change(msgspec.Struct, eq=False, gc=False):
    """A step from one state of an object to the next."""

    type: ChangeType
    storage: str
    record: Record
    """The state after it; of a deletion the last state, under the deletion's revision."""
    previous: Record | None
    frames: dict[Hashable, bytes] = {}
    """Encodings that those who watch share. They live as long as a watcher has yet to take the change."""
    _departed: Record | None = None

    def shown(self, as_type: ChangeType) -> Record:
        """The state that belongs to a type a watcher was told.

        To one whose selection an object leaves, it is the last state that was in the selection, under the new revision.
        """
        if as_type is not ChangeType.DELETED or self.type is ChangeType.DELETED:
            return self.record
        if self._departed is None:
            assert self.previous is not None
            self._departed = msgspec.structs.replace(
                self.previous,
                revision=self.record.revision,
                data=renumbered(self.previous.data, self.record.revision),
            )
        return self._departed

    def afresh(self) -> Change:
        """The same change without encodings."""
        return Change(self.type, self.storage, self.record, self.previous)


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def renumbered(data: bytes, revision: int) -> bytes:
    """An encoded object with another metadata.resourceVersion; all else stays byte for byte."""
    members = _MEMBERS.decode(data)
    metadata = _MEMBERS.decode(members["metadata"])
    metadata["resourceVersion"] = msgspec.Raw(b'"%d"' % revision)
    members["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(members)
