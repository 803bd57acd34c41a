"""The shoal command: one module per subcommand, joined in ``app``. Only here are all parts of Shoal put together."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command line of this process and gives its exit code."""
    try:
        # Imported here, so that modules of this package can be used without the whole command line.
        from shoal.cli.app import app  # noqa: PLC0415
        from shoal.cli.exits import run  # noqa: PLC0415
    except KeyboardInterrupt:
        return 3  # cancelled, before there was anything to say it with
    return run(app, sys.argv[1:])
