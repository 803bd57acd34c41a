"""A kind that somebody defines: what controllers of all kinds cannot know beforehand."""

from __future__ import annotations

from shoal.api.meta import Document, Resource

WIDGETS = Resource(type=Document, group="example.com", version="v1", kind="Widget", plural="widgets")
WIDGET_DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
