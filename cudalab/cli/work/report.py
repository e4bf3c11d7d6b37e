"""What `report` does: measure, or take what was measured, and write the lab report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends import choose_device
from cudalab.bench import choice, suite
from cudalab.bench.candidates import opened_alone
from cudalab.bench.document import Document, Merged, Table, as_json, load, merged
from cudalab.bench.report import content, pages
from cudalab.cli import params
from cudalab.errors import ExitCode, InputError, UsageError
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Size
from cudalab.output import live
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
    from cudalab.cli.work.predict import predict_sizes
    from cudalab.predict import show

    first = document.tables[0]
    known = {variant.name for variant in registry.variants(lab)}
    names = dict.fromkeys(row.variant for row in first.rows if row.variant in known)
    if not names:
        raise UsageError("--predict: none of cudalab's own variants is in the results")
    chosen = ",".join(names)
    (prediction,) = predict_sizes(lab, gpu, chosen, None, None, None, 0, dict(first.case))
    return show.grid(prediction)


def measure(
    lab: Lab, json_path: Path | None, *, device: str, threads: int | None, **options: Any
) -> tuple[Document, int]:
    """Measure over sizes, then over launch shapes, and join the results in one document."""
    device = choose_device(device)
    measured: list[Table] = []
    document: Document | None = None
    codes: set[int] = set()

    def save_so_far(latest: Document) -> None:
        if json_path and not params.is_stdout(json_path):
            save(json_path, as_json(replace(latest, tables=measured + latest.tables)))

    with opened_alone(device, threads) as (opened, busy), live.BenchProgress() as progress:
        for request in requests(lab, device, opened.features, **options):
            copy = document.environment.copy_gb_per_s if document else None  # measured once
            run = suite.Suite(opened, request, progress, save_so_far, busy, copy_gb_per_s=copy)
            for _ in run.tables():
                pass
            # A launch shape that cannot run is shown with the reason; that is no failure.
            codes |= run.exit_codes & {ExitCode.WRONG_ANSWER} if request.sweep else run.exit_codes
            measured += run.document.tables
            document = replace(run.document, tables=measured)
    assert document is not None
    if params.is_stdout(json_path):
        save(Path("-"), as_json(document))
    return document, ExitCode.of_all(codes)


def requests(
    lab: Lab,
    device: str,
    features: frozenset[str],
    *,
    sizes: list[Size] | None,
    variants: str,
    dist: str | None,
    seed: int,
    baselines: tuple[str, ...],
    sweep: tuple[tuple[str, list[str]], ...],
    time_limit: float | None,
    **case_options: Any,
) -> list[choice.Request]:
    """The measurements for a report: all variants over n, and launch shapes at the last size."""
    case = choice.case_of(lab, case_options)
    sizes = sizes or choice.default_sizes(lab, case, device)
    over_n = choice.Request(
        labs=[(lab, case)],
        sizes=sizes,
        variants=variants,
        dist=dist,
        seed=seed,
        baselines=baselines,
        time_limit_s=time_limit,
    )
    over_shapes = replace(over_n, sizes=sizes[-1:], baselines=())
    if sweep:
        return [over_n, replace(over_shapes, sweep=choice.joined(sweep))]
    if variants == choice.ALL:
        swept = choice.swept_variants(lab, case, device, features)
    else:
        swept = choice.named(lab, case, variants)
    sweeps = [(variant.name, choice.launch_shapes(variant)) for variant in swept]
    return [
        over_n,
        *(replace(over_shapes, variants=name, sweep=sweep) for name, sweep in sweeps if sweep),
    ]
