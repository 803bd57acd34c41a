"""How a command ended, as the Status that its client is told last of all."""

from __future__ import annotations

from typing import Any


def success() -> dict[str, Any]:
    """The Status of what ended well."""
    return {"metadata": {}, "status": "Success"}


def exited(code: int) -> dict[str, Any]:
    """The Status of a command that ended with this exit code."""
    if code == 0:
        return success()
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(message: str) -> dict[str, Any]:
    """The Status of what could not be done."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
