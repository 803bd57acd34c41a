"""The query parameters and options that requests to the API carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Propagation = Literal["Background", "Foreground", "Orphan"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]


def selection(label_selector: str = "", field_selector: str = "") -> dict[str, str]:
    """The query that selects objects."""
    query = {}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    return query


def watch_query(
    *,
    resource_version: str = "",
    label_selector: str = "",
    field_selector: str = "",
    initial_events: bool = False,
    timeout_seconds: int | None = None,
) -> dict[str, str]:
    """The query of a watch, always with bookmarks."""
    query = selection(label_selector, field_selector) | {"watch": "true", "allowWatchBookmarks": "true"}
    if resource_version:
        query["resourceVersion"] = resource_version
    if initial_events:
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    if timeout_seconds is not None:
        query["timeoutSeconds"] = str(timeout_seconds)
    return query


def options(
    *,
    field_manager: str = "",
    field_validation: FieldValidation | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> dict[str, str]:
    """The query of a write."""
    query = {}
    if field_manager:
        query["fieldManager"] = field_manager
    if field_validation:
        query["fieldValidation"] = field_validation
    if dry_run:
        query["dryRun"] = "All"
    if force:
        query["force"] = "true"
    return query


def delete_options(
    propagation: Propagation | None, grace_seconds: int | None, preconditions: Mapping[str, str]
) -> dict[str, Any]:
    """The body of a deletion: how children go, how soon, and which very object is meant."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation is not None:
        body["propagationPolicy"] = propagation
    if grace_seconds is not None:
        body["gracePeriodSeconds"] = grace_seconds
    if given := {key: value for key, value in preconditions.items() if value}:
        body["preconditions"] = given
    return body
