"""What `report` does: measure, or take what was measured, and write the lab report."""

from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.bench.document import Document, Merged, load, merged
from cudalab.bench.report import content, pages
from cudalab.cli import params
from cudalab.errors import InputError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.output.grid import Grid


def report(
    *,
    name: str,
    output: Path | None,
    measured: tuple[Path, ...],
    profile: Path | None,
    gpu: str | None,
    json_path: Path | None,
    **options: Any,
) -> int:
    """Measure, or take what was measured, and write the report."""
    if output and output.suffix.lower() not in (".md", ".html", ".htm"):
        raise UsageError(f"{output}: a report is a file called .md or .html")
    if params.is_stdout(json_path) and not output:
        raise UsageError("--json -: stdout is for the report", hint="name its file with -o")
    lab = labs.get(name)
    if gpu:
        from cudalab.predict import gpus

        gpus.load(gpu)  # an unknown name is an error before anything is measured
    try:
        text = profile.read_text(encoding="utf-8") if profile else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{profile}: cannot be read as text: {error}") from None
    if measured:
        params.refuse_measuring("--from", "name", "output", "measured", "profile", "gpu")
        run, status = merged([load(path) for path in measured], name), 0
    else:
        from cudalab.cli.work.report_measurements import measure

        document, status = measure(lab, json_path, **options)
        run = Merged(document, [])
    predicted = predict(lab, run.document, gpu) if gpu and run.document.tables else None
    source = content.Source(
        lab=lab, document=run.document, differing=run.differing, profile=text, predicted=predicted
    )
    pages.write(source, output)
    return status


def predict(lab: Lab, document: Document, gpu: str) -> Grid:
    """The predictions for the measured variants at the size that bench measures on a GPU."""
    from cudalab.cli.work.predict import Request, predict_sizes
    from cudalab.predict import show

    first = document.tables[0]
    known = {variant.name for variant in registry.variants(lab)}
    names = dict.fromkeys(row.variant for row in first.rows if row.variant in known)
    if not names:
        raise UsageError("--predict: none of cudalab's own variants is in the results")
    request = Request(gpu=gpu, variants=",".join(names))
    (prediction,) = predict_sizes(lab, request, dict(first.case))
    return show.grid(prediction)
