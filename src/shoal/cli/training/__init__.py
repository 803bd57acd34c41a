"""What people ask about their training runs: ``shoal get``, ``shoal logs`` and ``shoal runtimes``."""

from shoal.cli.training.getting import EXAMPLES as GET_EXAMPLES
from shoal.cli.training.getting import get
from shoal.cli.training.logs import EXAMPLES as LOGS_EXAMPLES
from shoal.cli.training.logs import logs
from shoal.cli.training.runtimes import INSTALL_EXAMPLES, LIST_EXAMPLES
from shoal.cli.training.runtimes import alone as runtimes_alone
from shoal.cli.training.runtimes import install as install_runtimes
from shoal.cli.training.runtimes import list_ as list_runtimes

__all__ = [
    "GET_EXAMPLES",
    "INSTALL_EXAMPLES",
    "LIST_EXAMPLES",
    "LOGS_EXAMPLES",
    "get",
    "install_runtimes",
    "list_runtimes",
    "logs",
    "runtimes_alone",
]
