"""What the program finds in its pod: whose gang it is in, where the API server is, and the account to ask it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.api.grove import start_order
from shoal.gangs.startup.container import ACCOUNT_FOLDER, ACCOUNT_VOLUME, POD_INFO_VOLUME


class Unusable(Exception):
    """The pod is not as the program needs it; says what is wrong, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Where the program is."""

    namespace: str
    gang: str
    host: str
    port: int
    account: Path
    """The folder with the token and the certificate authority; both are read anew for every connection."""

    @classmethod
    def found(cls, environ: Mapping[str, str]) -> Surroundings:
        """What variables and volumes say; raises Unusable."""
        pod_info = _folder(environ, POD_INFO_VOLUME, start_order.POD_INFO_FOLDER)
        host = environ.get("KUBERNETES_SERVICE_HOST", "")
        port = environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not (port.isascii() and port.isdecimal()):
            raise Unusable(
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not say where the API server is: "
                "run this in a pod"
            )
        return cls(
            namespace=_word(pod_info / start_order.NAMESPACE_FILE),
            gang=_word(pod_info / start_order.GANG_FILE),
            host=host,
            port=int(port),
            account=_folder(environ, ACCOUNT_VOLUME, ACCOUNT_FOLDER),
        )

    def token(self) -> str:
        """The token that the account has now; raises Unusable."""
        return _word(self.account / "token")

    def authorities(self) -> str | None:
        """The certificates that the server is believed by; None for those of the machine."""
        try:
            return (self.account / "ca.crt").read_text()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Unusable(f"{self.account / 'ca.crt'} cannot be read: {error}") from error


def _folder(environ: Mapping[str, str], volume: str, path: str) -> Path:
    """Where a volume is: a node that cannot put volumes at their paths says so in a variable."""
    return Path(environ.get(f"SHOAL_VOLUME_{volume.upper().replace('-', '_')}") or path)


def _word(file: Path) -> str:
    try:
        word = file.read_text().strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unusable(
            f"{file} cannot be read ({reason}): mount the volume that the operator gave to the pod"
        ) from error
    if not word:
        raise Unusable(f"{file} is empty: the pod lacks what the operator writes there")
    return word
