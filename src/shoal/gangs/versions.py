"""Which of two pictures of an object is the later one: informers of one kind may lag behind each other."""

from __future__ import annotations

from shoal.api.meta import HasMetadata


def is_newer(found: HasMetadata, other: HasMetadata) -> bool:
    """Whether this is a later picture of the very same object."""
    new, old = found.metadata.resource_version, other.metadata.resource_version
    is_same = found.metadata.uid == other.metadata.uid
    return is_same and new.isdigit() and old.isdigit() and int(new) > int(old)
