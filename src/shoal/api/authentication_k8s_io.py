"""authentication.k8s.io: whose a token is. Reviews are only created, and so are read whole."""

from __future__ import annotations

from typing import Final

from shoal.api.meta import Document, Resource

TOKEN_REVIEWS: Final = Resource(
    type=Document,
    group="authentication.k8s.io",
    version="v1",
    kind="TokenReview",
    plural="tokenreviews",
    namespaced=False,
)
