"""What keeps a container from being started, as its pod's status or an Event will say it."""

from __future__ import annotations

CONFIG_ERROR = "CreateContainerConfigError"
"""The reason of a container whose configuration is missing or cannot be."""
CREATE_ERROR = "CreateContainerError"
"""The reason of a container that nobody could make."""


class ConfigProblem(Exception):
    """Why a container waits: ``reason`` is the one word of its state, ``message`` the sentence beside it."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(f"{reason}: {message}")


class VolumeProblem(Exception):
    """Why a pod's volumes are not there yet: the message of an Event ``FailedMount``. It is tried again later."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class Missing(Exception):
    """Something that a volume or a variable is made of is not there, or not fit; said in a kubelet's words."""


class Unbound(Missing):
    """A volume's claim has no volume (yet)."""


def combined(problems: list[str]) -> str:
    """Several problems as one text, as Go's aggregated errors are written."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
