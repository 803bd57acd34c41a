"""Which test files must run: those of a suite whose inputs changed since they passed on this machine.

``python -m tests.support.suites kube`` runs a suite. ``inputs`` finds what a test file depends on, ``passes`` remembers
what has passed, ``recording`` is the pytest plugin that tells it.
"""
