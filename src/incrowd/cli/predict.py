"""`incrowd predict`: predictions of a model for the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, ReadingOptions, takes
from incrowd.cli.output import print_json, print_table


@dataclass(frozen=True)
class PredictOptions(ReadingOptions):
    """The options of `incrowd predict`."""

    model: Annotated[Path, typer.Argument(help="The folder of a learned model, or its model.json.")]
    data: Annotated[str, typer.Argument(help="The table; it needs the columns that the model reads.")]
    out: Annotated[Path, typer.Option("--out", help="A new file, .csv, .tsv or .parquet: one line for each row.")]
    json: Json = False


@takes(PredictOptions)
def predict(options: PredictOptions) -> None:
    """Write the prediction of a model for each row: `prediction`, and `p_CLASS` for every class.

    It costs nothing and reads no ledger. Predictions about private rows are private, too.
    """
    from incrowd.methods.learning.shared.models import LearnedModel
    from incrowd.workflows.release.learn import PRIVATE, predict_to

    types = {column.name: column.type for column in LearnedModel.load(options.model).columns}
    rows = predict_to(options.model, options.data, options.out, replace(options.source_options, types=types))
    if options.json:
        print_json({"file": str(options.out), "rows": rows, "notes": [PRIVATE]})
        return
    lines = [("file", str(options.out)), ("rows", f"{rows:,}"), ("spent", "nothing: the model was charged before")]
    print_table("predicted", lines, f"{PRIVATE[0].upper()}{PRIVATE[1:]}.")
