"""The measurements of a report: over sizes, then over launch shapes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cudalab.backends import choose_device
from cudalab.bench import choice, suite
from cudalab.bench.candidates import opened_alone
from cudalab.bench.document import Document, Table, as_json
from cudalab.cli import params
from cudalab.errors import ExitCode
from cudalab.formats import save
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Size
from cudalab.output import live


def measure(
    lab: Lab, json_path: Path | None, *, device: str, threads: int | None, **options: Any
) -> tuple[Document, int]:
    """Measure, and join the results in one document; the exit status comes with it."""
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
