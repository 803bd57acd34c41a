"""Why the runtime does not do what it was asked for."""

from __future__ import annotations


class Refused(Exception):
    """A question's answer is no: a CamelCase word for programs, a sentence for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
