"""The functions of CEL itself and those that Kubernetes adds: lists, patterns, addresses, quantities and more."""

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.library.addresses import ADDRESSES
from shoal.cluster.apiserver.cel.library.conversions import CONVERSIONS
from shoal.cluster.apiserver.cel.library.lists import LISTS
from shoal.cluster.apiserver.cel.library.names import NAMES
from shoal.cluster.apiserver.cel.library.operators import OPERATORS
from shoal.cluster.apiserver.cel.library.optionals import OPTIONALS
from shoal.cluster.apiserver.cel.library.quantities import QUANTITIES
from shoal.cluster.apiserver.cel.library.strings import STRINGS
from shoal.cluster.apiserver.cel.library.times import TIMES
from shoal.cluster.apiserver.cel.library.versions import VERSIONS

KUBERNETES = Library(
    OPERATORS,
    CONVERSIONS,
    STRINGS,
    TIMES,
    LISTS,
    OPTIONALS,
    QUANTITIES,
    VERSIONS,
    ADDRESSES,
    NAMES,
)

__all__ = ["KUBERNETES"]
