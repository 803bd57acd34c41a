"""The part of jq that definitions of workloads are written in: reading values, never changing or making many of them.

Paths, pipes, ``//``, arithmetic, comparisons, ``and``, ``or``, ``if``, arrays, and the functions of ``FUNCTIONS``. What
is not among them is refused when the expression is read, not when it is needed. Where jq and gojq differ, which Karta
uses, it is as in gojq: the values of an object come in the order of its keys.
"""

from shoal.scheduler.grouper.jq.nodes import InvalidQuery, QueryFailed
from shoal.scheduler.grouper.jq.parsing import DEEPEST, LONGEST, MOST_WORDS
from shoal.scheduler.grouper.jq.places import Path
from shoal.scheduler.grouper.jq.query import Query, parse
from shoal.scheduler.grouper.jq.values import FUNCTIONS, shown

__all__ = [
    "DEEPEST",
    "FUNCTIONS",
    "LONGEST",
    "MOST_WORDS",
    "InvalidQuery",
    "Path",
    "Query",
    "QueryFailed",
    "parse",
    "shown",
]
