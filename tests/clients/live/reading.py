"""Transcripts of clusters in which things happen by themselves, less what differs from run to run."""

from __future__ import annotations

import re

# The letters that generated names are made of: no vowels, and nothing that looks like something else.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_RULES = (
    # What a version of a template is called: another hash than Kubernetes'.
    (rf"(?<=[-=\"])[{_LETTERS}]{{6,10}}\b", "<hash>"),
    (rf"-[{_LETTERS}]{{5}}\b", "-<random>"),
    (r"\b10\.\d+\.\d+\.\d+\b", "<address>"),
    (r"\bsim-0-\d\b", "<node>"),
    # Who plays the kubelet.
    (r"(?s)\nLease:.*?\nConditions:", "\nConditions:"),
    (r"(?m)^ +node\.alpha\.kubernetes\.io/ttl: 0\n", ""),
    (r"(?m)^( +shoal\.dev/agent-socket: ).+", r"\1<path>"),
    (r"(?m)^( +(?:Container|Image) ID:  ).+", r"\1<id>"),
    # The plain scheduler neither evicts nor knows of claims to devices.
    (r" no new claims to deallocate, preemption: .* for scheduling\.", ""),
    (r"(?m)^(stderr: )?[EW]\d{4} [\d:.]+ .*?(\w+\.go:\d+\])", r"\1\2"),
    (r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d 20\d\d\b", "<time>"),
    # How far a rollout was when it was looked at.
    (r"(?m)^Waiting for .*\n", ""),
    (r"(?m)^waiting for statefulset .*\n", ""),
    # Whether it was there still when the waiting began.
    (r"(?m)^(\$ kubectl wait .*--for=delete.*\n)(?:\S+ condition met\n)+", r"\1"),
    # How often an eviction was tried, which its budget decides.
    (r"(?m)^evicting pod .*\n", ""),
    (r"(?m)^stderr: (error when evicting .*\n)+\n", "\n"),
    (r"(?m)^(stderr: )?(error when evicting .*\n)+", r"\1"),
    # In which order the reasons are told that keep a node from being drained.
    (r"\[cannot delete [^]]*\]", "[<reasons>]"),
    # A pod that went while the real scheduler was binding it.
    (
        r"(?m)^.*FailedScheduling.*(running Bind plugin.*(not found|is being deleted)|skip schedule deleting pod).*\n",
        "",
    ),
    # Endpoints of a pod that went while they were worked out.
    (r"(?m)^.*Warning  FailedToUpdateEndpoint(Slices)?  .*\n", ""),
    # Events are told in the name of another component.
    (r"(?m)^(  (?:Normal|Warning)  \S+  <age>  )\S+(  )", r"\1<component>\2"),
)
_COMPILED = tuple((re.compile(pattern), by) for pattern, by in _RULES)
_IN_ANY_ORDER = re.compile(
    r"(?m)(?:^(?:  |<age>  )(?:Normal|Warning)  .*\n)+|(?:^cannot delete .*\n)+|(?:^  [A-Z]\w+  (?:True|False)  \w+\n)+"
)
_WARNINGS = re.compile(r"(?m)(?<=^stderr: Warning: ).*; .*$")
"""kubectl tells them in the order of a Go map."""


def settled(transcript: str) -> str:
    """A transcript with a name for everything that chance decides.

    Equal events, reasons and conditions stand there once, in one order.
    """
    for pattern, by in _COMPILED:
        transcript = pattern.sub(by, transcript)
    transcript = _WARNINGS.sub(lambda found: "; ".join(sorted(found.group(0).split("; "))), transcript)
    return _IN_ANY_ORDER.sub(lambda found: "".join(sorted(set(found.group(0).splitlines(keepends=True)))), transcript)
