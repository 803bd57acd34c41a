"""A runtime's template with all patches of a TrainJob, in the order in which the TrainJob lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from shoal.api.trainer import RuntimePatch, RuntimeTemplate, TemplateMetadata
from shoal.training.patches.strategic import strategic_merge


def patched_template(template: RuntimeTemplate, patches: Sequence[RuntimePatch]) -> RuntimeTemplate:
    """The template with the patches merged into it, and its replicated jobs in the order that the runtime has them in.

    Labels and annotations of the JobSet are laid over the runtime's, a later patch over an earlier one.
    """
    changes = [
        patch.training_runtime_spec.template
        for patch in patches
        if patch.training_runtime_spec is not None and patch.training_runtime_spec.template is not None
    ]
    metadata, spec = template.metadata, template.spec
    for change in changes:
        if change.metadata is not None:
            metadata = _with_metadata(metadata or TemplateMetadata(), change.metadata)
        if change.spec:
            spec = strategic_merge(spec, _said(change.spec))
    return RuntimeTemplate(metadata=metadata, spec=_in_order_of(template.spec, spec))


def _with_metadata(metadata: TemplateMetadata, change: TemplateMetadata) -> TemplateMetadata:
    return replace(
        metadata,
        labels={**metadata.labels, **change.labels},
        annotations={**metadata.annotations, **change.annotations},
    )


def _said(patch: Any) -> Any:
    """What a patch says: a null or an empty list in it says nothing, and takes nothing away."""
    if isinstance(patch, dict):
        return {key: _said(value) for key, value in patch.items() if value is not None and value != []}
    if isinstance(patch, list):
        return [_said(item) for item in patch]
    return patch


def _in_order_of(runtime: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Replicated jobs that the runtime does not have, which admission refuses, come last."""
    if spec is runtime or "replicatedJobs" not in spec:
        return spec
    places = {job.get("name"): place for place, job in enumerate(runtime.get("replicatedJobs") or ())}
    jobs = sorted(spec["replicatedJobs"], key=lambda job: places.get(job.get("name"), len(places)))
    return {**spec, "replicatedJobs": jobs}
