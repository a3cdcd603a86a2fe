"""Lists how every official example of a Consent resource is read.

    npm pack hl7.fhir.r4.examples hl7.fhir.r4b.examples hl7.fhir.r5.examples   # and unpack each into a folder
    python -m tests.governance.consent.official FOLDER ...

The examples are not kept here.  A folder may also hold what another program wrote, such as `fhir.resources`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from incrowd.governance.consent.event import moment
from incrowd.governance.consent.fhir import FhirReading, SkippedResource, read_fhir

READING = FhirReading("research/newborns", moment("2026-06-01T12:00:00Z"))


def cases(folder: Path) -> list[tuple[str, str]]:
    """Return for each Consent resource below a folder what it is read as, or why it is skipped."""
    lines = []
    for file in sorted(folder.rglob("Consent-*.json")):
        for one in read_fhir(json.loads(file.read_text(encoding="utf-8")), READING):
            if isinstance(one, SkippedResource):
                lines.append((file.name, f"skipped: {one.reason}"))
            else:
                lines.append((file.name, f"{one.event.decided} {one.event.purpose}"))
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", nargs="+", type=Path)
    for folder in options.parse_args().folders:
        for name, text in cases(folder):
            print(f"{folder.name}  {name}: {text}")


if __name__ == "__main__":
    main()
