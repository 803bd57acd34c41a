"""``shoal crds``: prints the CustomResourceDefinitions of every kind that Shoal serves, or writes for others."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.output import DocumentFormat, show_manifests

EXAMPLES = {
    "shoal crds | kubectl apply --server-side -f -": "Install every kind",
    "shoal crds --group kai.scheduler": "Print the kinds of one group",
    "shoal crds --kind Queue --kind PodGroup -o json": "Print two kinds as JSON",
    "shoal crds --group scheduling.volcano.sh": "Print the kinds of another scheduler",
}


def crds(
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", metavar="GROUP", help="Only this API group; may be repeated.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", "-k", metavar="KIND", help="Only this kind; may be repeated.")
    ] = None,
    output: Annotated[DocumentFormat, typer.Option("--output", "-o", help="How to print.")] = DocumentFormat.YAML,
) -> None:
    """Print the definitions of Shoal's kinds, ready for kubectl apply.

    Kinds of other schedulers and drivers are printed where they are asked for by their group, or by a kind that Shoal
    has not: who installs those brings the definitions. The same version of Shoal always prints the same bytes.
    """
    from shoal.api.definitions import ALL, DIALECTS  # noqa: PLC0415 - to import them takes longer than --help should

    groups = _chosen("group", group or (), sorted({definition.group for definition in (*ALL, *DIALECTS)}))
    own_kinds = {definition.kind for definition in ALL}
    strangers = [definition for definition in DIALECTS if kind and definition.kind not in own_kinds]
    offered = [definition for definition in (*ALL, *DIALECTS) if definition.group in groups] or [*ALL, *strangers]
    kinds = _chosen("kind", kind or (), sorted({definition.kind for definition in offered}))
    chosen = [definition for definition in offered if not kinds or definition.kind in kinds]
    show_manifests((definition.manifest() for definition in chosen), output)


def _chosen(what: str, asked: list[str] | tuple[()], known: list[str]) -> set[str]:
    """The names asked for, spelt as they are known."""
    spelt = {name.lower(): name for name in known}
    for name in asked:
        if name.lower() not in spelt:
            raise typer.BadParameter(f"{name} is unknown, choose from {', '.join(known)}", param_hint=f"--{what}")
    return {spelt[name.lower()] for name in asked}
