"""What every namespace gets for the programs in it: a default account, the cluster's authority, and tokens on request.

``residents`` keeps the account and the ConfigMap, ``tokens`` fills and removes the Secrets that hold the token of an
account, and ``signing`` makes those tokens with the cluster's key.
"""

from shoal.cluster.controllers.accounts.residents import Residents
from shoal.cluster.controllers.accounts.signing import Signer, signer_of
from shoal.cluster.controllers.accounts.tokens import Tokens
from shoal.kube import Manager

__all__ = ["Signer", "add_accounts", "signer_of"]


def add_accounts(manager: Manager, *, authority: bytes | None, signer: Signer | None) -> None:
    """Adds the controllers; without an authority or a signer there is nothing to publish, or no tokens."""
    manager.add(Residents(manager, authority=authority).controller)
    if signer is not None:
        manager.add(Tokens(manager, authority=authority or b"", signer=signer).controller)
