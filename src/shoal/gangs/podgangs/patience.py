"""When the pods of a gang that is not whole are worth writing down.

The pods of a gang are made within moments of each other. Naming them in the PodGang one by one would write the whole
list as often as there are pods, and wake every reader of it each time; so a change waits until the gang is whole, which
loses nothing, since no pod may start before. But the last pod may never come (a quota, a refused template), and those
that are there must be seen: what waited for a second is written as it is. So a gang that fills, or loses and replaces
pods, is written at most once a second until it is whole again, and none is left unnamed for good.
"""

from __future__ import annotations

from typing import Final

SOON: Final = 0.5
"""Seconds after which a status is told that nobody waits for: most of them are superseded by then."""
AT_FIRST: Final = 2.0
"""The same for the first status of a gang: one whose pods come at once is told of when it has them."""

RACE_LOST: Final = 0.05
"""Seconds after which a status is told that lost a race against another writer."""
