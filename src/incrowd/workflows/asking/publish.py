"""Publishing an answer: data, certificate and report appear together in a new folder, or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from incrowd.core.certificate import Certificate
from incrowd.engines.writers.sinks import Folders, publish, write_table
from incrowd.methods.outcomes.answer import AnswerTable
from incrowd.workflows.asking.asking import Answered
from incrowd.workflows.recount import require_written
from incrowd.workflows.report import public_report


def publish_answer(answered: Answered, folder: Path, form: str = "csv") -> Certificate:
    """Write an answer into a folder that anyone may have; return its certificate with the hash of the file."""
    table, name, written = AnswerTable(answered.answer.to_arrow()), f"data.{form}", list[Certificate]()

    def write(stage: Folders) -> None:
        write_table(table.reader(), stage.public / name)
        content = (stage.public / name).read_bytes()
        output = {"name": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        certificate = replace(answered.certificate, outputs=(output,))
        (stage.public / "certificate.json").write_text(certificate.to_text(), encoding="utf-8")
        (stage.public / "report.html").write_text(public_report(certificate, table), encoding="utf-8")
        written.append(certificate)

    publish(Folders(folder), write, lambda stage: require_written(written[0], stage.public / name))
    return written[0]
