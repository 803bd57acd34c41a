"""``shoal explain``: why a job waits, asked of a running scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError, ExitCode
from shoal.cli.output import Format, Table, show, write
from shoal.cli.up import DATA_DIR, DataDirOption

EXAMPLES = {
    "shoal explain podgroup/llama -n research": "Why a gang waits, and what would let it start",
    "shoal explain trainjob/llama -n research": "The same by whatever you know it by: a pod, a Job, a PodGang …",
    "shoal explain pod/llama-0 -n research -o json": "For a script",
}

ANSWERS_WITHIN = 40.0
_USUAL = "http://127.0.0.1:8081"
_PATH = "/api/v1/scheduler/explain"


def explain(
    what: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="podgroup, pod, job, trainjob, podgang … and its name.")
    ],
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Where it is.")] = "default",
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="URL", help="The plugin server; otherwise that of the data dir, or port 8081 here."
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="A bearer token, where one is needed.")
    ] = None,
    data_dir: DataDirOption = DATA_DIR,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Say why a job waits: what stands in its way, its place in line, who holds what it needs, what would help.

    A running scheduler is asked, and answers when its current cycle ends.
    """
    kind, has_name, name = what.partition("/")
    if not (kind and has_name and name):
        raise typer.BadParameter(f"{what} is no object: write podgroup/NAME", param_hint="KIND/NAME")
    place = DataDir(data_dir)
    # While nobody holds the data dir its ports may be anybody's, who must not be given a token.
    own = place.endpoints().get("visualizer") if server is None and place.holder() is not None else None
    token = place.admin_token() if own and token_file is None else _token(token_file)
    address = server or own or _USUAL
    found = _asked(address, {"kind": kind, "name": name, "namespace": namespace}, token)
    if not found.get("jobs"):
        raise CommandError(str(found.get("message") or f"nothing is known of {what} in {namespace}"))
    if output is Format.TABLE:
        from shoal.cli.scheduling.pages import answer_page  # noqa: PLC0415 - other commands do without

        write(answer_page(found))
    else:
        show(found, output, table=Table(rows=()))


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        return file.read_text().strip().splitlines()[0]
    except (OSError, IndexError) as error:
        raise CommandError(f"--token-file {file}: has no token in it", code=ExitCode.USAGE) from error


def _asked(address: str, query: dict[str, str], token: str) -> dict[str, Any]:
    import json  # noqa: PLC0415 - other commands do without
    import urllib.error  # noqa: PLC0415
    import urllib.parse  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    if not address.startswith(("http://", "https://")):
        raise typer.BadParameter(f"{address} is no address: write {_USUAL}", param_hint="--server")
    url = f"{address.rstrip('/')}{_PATH}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url)  # noqa: S310 - http or https, see above
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWERS_WITHIN) as response:  # noqa: S310
            found = json.load(response)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        if error.code == 404 and error.headers.get_content_type() == "application/json":
            found = json.loads(text)
        else:
            code = ExitCode.REFUSED if error.code in (400, 401, 403) else ExitCode.FAILED
            raise CommandError(text.strip() or f"{address} answers {error.code}", code=code) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise CommandError(
            f"no scheduler answers at {address} ({why}): start one with `shoal up`, or name it with --server",
            code=ExitCode.SYSTEM,
        ) from error
    return found if isinstance(found, dict) else {}
