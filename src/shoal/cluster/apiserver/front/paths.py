"""What is not a resource: health, version, discovery, OpenAPI, metrics, and the keys of ServiceAccount tokens."""

from __future__ import annotations

from collections.abc import Callable

from shoal import __version__
from shoal.cluster.apiserver.access.tokens import TokenSigner
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.calls import JSON, Answer, Call, json_answer, no_such_path, text_answer
from shoal.cluster.apiserver.discovery import Discovery, OpenApi, openapi_v2
from shoal.cluster.apiserver.front.negotiation import check_producible
from shoal.cluster.apiserver.refusals import method_not_allowed

MINOR = "36"
VERSION = f"v1.{MINOR}.4+shoal"

_KEYS = "application/jwk-set+json"
_HEALTH = ("healthz", "livez", "readyz")


class Paths:
    """Answers requests that are not on resources; ``checks`` are by name and say what is wrong, or nothing."""

    def __init__(
        self,
        *,
        discovery: Discovery,
        openapi: OpenApi,
        signer: TokenSigner,
        address: str,
        metrics: Callable[[], bytes],
        checks: dict[str, Callable[[], str]],
    ) -> None:
        self._discovery = discovery
        self._openapi = openapi
        self._signer = signer
        self._address = address
        self._metrics = metrics
        self._checks = checks

    async def answer(self, call: Call, _user: User) -> Answer:
        """The answer for a path."""
        parts = call.path[1:].rstrip("/").split("/")
        if call.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        accept = call.headers.get("accept", "")
        match parts:
            case [""]:
                return json_answer({"paths": self._known()})
            case ["version"]:
                check_producible(accept, (JSON,))
                return json_answer(version())
            case [health, *which] if health in _HEALTH:
                return self._health(call, health, which)
            case ["metrics"]:
                return Answer(body=self._metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")
            case ["openapi", "v3", *_]:
                return self._openapi.answer(call)
            case ["openapi", "v2"]:
                return openapi_v2(call)
            case ["api", *_] | ["apis", *_]:
                return self._discovery.answer(call)
            case ["openid", "v1", "jwks"]:
                check_producible(accept, (_KEYS,))
                answer = json_answer(self._signer.keys())
                answer.content_type = _KEYS
                return answer
            case [".well-known", "openid-configuration"]:
                return json_answer(self._signer.configuration(self._address))
        return no_such_path()

    def _known(self) -> list[str]:
        fixed = ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return sorted([*fixed, "/.well-known/openid-configuration", "/openid/v1/jwks", *self._discovery.paths()])

    def _health(self, call: Call, health: str, which: list[str]) -> Answer:
        checks = {name: check for name, check in self._checks.items() if not which or name == "/".join(which)}
        if which and not checks:
            return no_such_path()
        excluded = set(call.query.get("exclude", ()))
        problems = {name: check() for name, check in checks.items() if name not in excluded}
        lines = [
            f"[+]{name} ok" if not problem else f"[-]{name} failed: {problem}" for name, problem in problems.items()
        ]
        if any(problems.values()):
            return text_answer("\n".join([*lines, f"{health} check failed", ""]), status=500)
        if "verbose" in call.query:
            return text_answer("\n".join([*lines, f"{health} check passed", ""]))
        return text_answer("ok")


def version() -> dict[str, str]:
    """What the server says of itself."""
    return {
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"shoal {__version__}",
        "compiler": "python",
        "platform": "linux/amd64",
    }
