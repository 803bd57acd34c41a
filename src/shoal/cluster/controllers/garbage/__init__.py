"""Deletes what has lost its owners, and lets owners go in the order that was asked for.

``monitors`` follow every kind that can be deleted, as long as ``kinds`` finds it served; ``verdict`` says what becomes
of an object by the standing of its owners; ``edits`` and ``requests`` carry that out, ``absence`` remembers the owners
that are gone, and ``controller`` puts them to work.
"""

from shoal.cluster.controllers.garbage.controller import add_garbage_collector

__all__ = ["add_garbage_collector"]
