"""What a name may look like, and how names are made.

Every check returns the list of what is wrong, empty where nothing is; each entry says what the rule is, so that it can
be shown to the author of a manifest as it stands. The rules are those by which the API server admits objects: the
letters are ASCII, and a limit counts characters.
"""

from __future__ import annotations

import hashlib
import re
from typing import Protocol

LABEL_LIMIT = 63
"""The longest DNS label, label value, and name part of a label key."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl remembers a whole object: on a copy it would speak of another one."""

SUBDOMAIN_LIMIT = 253
"""The longest DNS subdomain: what most object names may be."""

GENERATED_SUFFIX_LENGTH = 5

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no word appears by chance; and no 0, 1 or 3, which read as letters."""

_DIGEST_LENGTH = 8

_DNS1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS1123_SUBDOMAIN = re.compile(rf"{_DNS1123_LABEL.pattern}(\.{_DNS1123_LABEL.pattern})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


class RandomSource(Protocol):
    """Where random letters come from: ``random`` itself, which a fork seeds anew, or a source of its kinds."""

    def choice(self, seq: str, /) -> str:
        """One of the letters."""
        ...


def dns1035_label_problems(name: str) -> list[str]:
    """What keeps a text from being a DNS-1035 label, as the names of Services and TrainJobs are."""
    problems = _too_long(name, LABEL_LIMIT)
    if not _DNS1035_LABEL.fullmatch(name):
        problems.append(
            "must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit "
            "(for example 'my-name' or 'abc-123')"
        )
    return problems


def dns1123_label_problems(name: str) -> list[str]:
    """What keeps a text from being a DNS-1123 label, as the names of namespaces and containers are."""
    problems = _too_long(name, LABEL_LIMIT)
    if _DNS1123_LABEL.fullmatch(name):
        return problems
    if _DNS1123_SUBDOMAIN.fullmatch(name):
        problems.append("must not contain dots")
    else:
        problems.append(
            "must consist of lower case letters, digits and '-', and start and end with a letter or digit "
            "(for example 'my-name' or '123-abc')"
        )
    return problems


def dns1123_subdomain_problems(name: str) -> list[str]:
    """What keeps a text from being a DNS-1123 subdomain, as the names of most objects are."""
    problems = _too_long(name, SUBDOMAIN_LIMIT)
    if not _DNS1123_SUBDOMAIN.fullmatch(name):
        problems.append(
            "must consist of lower case letters, digits, '-' and '.', and each part between dots must start and end "
            "with a letter or digit (for example 'example.com')"
        )
    return problems


def qualified_name_problems(key: str) -> list[str]:
    """What keeps a text from being a label key: a name, alone or after a prefix, as in ``example.com/name``."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return ["must have at most one '/', between a DNS prefix and a name (for example 'example.com/my-name')"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must not be empty: leave out the '/' or write a DNS name before it")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns1123_subdomain_problems(prefix)]
    if not name:
        return [*problems, "name part must not be empty"]
    return problems + [f"name part {problem}" for problem in _too_long(name, LABEL_LIMIT) + _not_qualified(name)]


def label_value_problems(value: str) -> list[str]:
    """What keeps a text from being the value of a label; the empty text is one."""
    return _too_long(value, LABEL_LIMIT) + (_not_qualified(value) if value else [])


def generate_name(base: str, source: RandomSource) -> str:
    """A fresh name from a ``generateName``, as the API server makes it: five random letters after at most 58 of it."""
    suffix = "".join(source.choice(_ALPHABET) for _ in range(GENERATED_SUFFIX_LENGTH))
    return base[: LABEL_LIMIT - GENERATED_SUFFIX_LENGTH] + suffix


def fit_name(name: str, limit: int = LABEL_LIMIT) -> str:
    """The name itself where it fits, else its beginning and a digest of the whole: the same at every call.

    Two long names that differ only past the limit thus stay different.
    """
    if len(name) <= limit:
        return name
    if limit <= _DIGEST_LENGTH + 1:
        raise ValueError(f"a shortened name needs more than {_DIGEST_LENGTH + 1} characters, not {limit}")
    head = name[: limit - _DIGEST_LENGTH - 1].rstrip("-._")
    return f"{head}-{_digest(name)}"


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters, and has {len(text)}"] if len(text) > limit else []


def _not_qualified(name: str) -> list[str]:
    if _QUALIFIED.fullmatch(name):
        return []
    return [
        "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit "
        "(for example 'my-name', 'my.name' or '123-abc')"
    ]


def _digest(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    letters = []
    for _ in range(_DIGEST_LENGTH):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)
