"""Carries out what the scheduler has decided: binds pods to nodes, and holds the GPUs that pods share.

``add_binding`` adds the binder and the keeper of reservations to a manager. ``backoff`` says how long a pod rests whose
binding failed, ``groups`` how pods are labelled that share a device: the scheduler reads both.
"""

from shoal.scheduler.binding.backoff import carried_failures, failures, is_given_up, rests_until, retry_after
from shoal.scheduler.binding.controller import add_binding
from shoal.scheduler.binding.groups import group_labels, groups_of
from shoal.scheduler.binding.settings import RESERVATION_IMAGE, BindingSettings, ReservationSettings

__all__ = [
    "RESERVATION_IMAGE",
    "BindingSettings",
    "ReservationSettings",
    "add_binding",
    "carried_failures",
    "failures",
    "group_labels",
    "groups_of",
    "is_given_up",
    "rests_until",
    "retry_after",
]
