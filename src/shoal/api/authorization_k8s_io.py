"""authorization.k8s.io: what a user may do. Reviews are only created, and so are read whole."""

from __future__ import annotations

from typing import Final

from shoal.api.meta import Document, Resource

SUBJECT_ACCESS_REVIEWS: Final = Resource(
    type=Document,
    group="authorization.k8s.io",
    version="v1",
    kind="SubjectAccessReview",
    plural="subjectaccessreviews",
    namespaced=False,
)
