"""What the documents say of each other; what the README says of the program is in test_newcomer."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_link_of_the_documents_leads_somewhere() -> None:
    folders = ("docs", "bench", "examples")
    documents = [*ROOT.glob("*.md"), *(document for folder in folders for document in (ROOT / folder).rglob("*.md"))]
    broken = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert broken == []
