"""rbac.authorization.k8s.io: who may do what. These kinds are only written, and so are read whole."""

from __future__ import annotations

from typing import Final

from shoal.api.meta import Document, Resource

GROUP: Final = "rbac.authorization.k8s.io"

ROLES: Final[Resource[Document]] = Resource(type=Document, group=GROUP, version="v1", kind="Role", plural="roles")
ROLE_BINDINGS: Final[Resource[Document]] = Resource(
    type=Document, group=GROUP, version="v1", kind="RoleBinding", plural="rolebindings"
)
