"""What `cudalab predict` does: count on the CPU device, and turn the counts into times on a GPU."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends import host_features
from cudalab.bench import choice
from cudalab.cli import params
from cudalab.cli.failures import within
from cudalab.errors import CudalabError, UsageError, install_command
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.output import live, terminal
from cudalab.predict import gpus, growth, ladder, show
from cudalab.predict.counts import Generated
from cudalab.predict.show import page
from cudalab.system.supervise import prints_to_stderr

BESIDE_S = 20.0  # for the lab's variants beside a kernel file; what they do is kept
NO_NVCC = (
    "no nvcc here, so nothing is known of the instructions: the order is likely, the times are "
    f"rough; {install_command('nvcc')} brings it"
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is predicted, besides the lab's case."""

    gpu: str
    variants: str = choice.ALL
    kernel: Path | None = None
    sizes: list[Size] | None = None
    dist: str | None = None
    seed: int = 0
    beside: bool = False  # a kernel file stands the lab's fastest variant


def predict(
    *,
    lab: str,
    kill_after: float | None,
    json_path: Path | None,
    html_path: Path | None,
    **options: Any,
) -> int:
    """Predict within the time limit."""
    if options["gpu"] is None:
        raise UsageError(
            "--gpu is missing: the GPU to predict for",
            hint=f"one of {', '.join(gpus.names())}, or a file of the same form",
        )
    if options["kernel"]:
        if options["variants"] != choice.ALL:
            params.exclude("--variants", "--kernel")
        kill_after = kill_after or params.KERNEL_KILL_AFTER_S
    options["beside"] = bool(options["kernel"]) and not params.is_stdout(json_path)
    request = params.grouped(Request, options)
    return within(kill_after, partial(run, labs.get(lab), request, options, json_path, html_path))


def run(
    lab: Lab,
    request: Request,
    case_options: dict[str, Any],
    json_path: Path | None,
    html_path: Path | None,
) -> int:
    """Predict, print and write."""
    predictions = predict_sizes(lab, request, case_options)
    rungs = [rung for each in predictions for rung in each.rungs]
    if all(rung.failed for rung in rungs):
        raise CudalabError("\n".join(dict.fromkeys(rung.failed for rung in rungs)))
    if not params.is_stdout(json_path):
        for each in predictions:
            terminal.grid(show.grid(each))
    params.write_json(json_path, ladder.Predictions(predictions=predictions))
    if html_path:
        save(html_path, page(predictions, gpus.load(request.gpu)))
    return 0


def predict_sizes(
    lab: Lab, request: Request, case_options: dict[str, Any]
) -> list[ladder.Prediction]:
    """Predict the chosen variants at each size; beside a kernel file the lab's fastest, too."""
    gpu, case = gpus.load(request.gpu), choice.case_of(lab, case_options)
    if request.kernel:
        chosen, notes = [choice.own_variant(lab, case, request.kernel)], list[str]()
    else:
        chosen, notes = choice.select(lab, case, request.variants, "cpu", host_features())
    dist = lab.distribution(request.dist)
    result = []
    with (
        live.BenchProgress() as progress,
        tempfile.TemporaryDirectory() as name,
        prints_to_stderr(),
    ):
        progress.begin(f"predict {lab.name}")

        for size in request.sizes or [lab.teaching.bench_size(case, "cuda")]:
            data = Generated(lab, case, dist, request.seed, folder=Path(name))
            items, flops = growth.amount(data, size)

            def timed(variant: Variant, size: Size = size, data: Generated = data) -> ladder.Rung:
                progress.step(variant.name)
                (rung,) = ladder.predict(lab, variant, case, size, data, [gpu])
                return rung

            rungs = [timed(variant) for variant in sorted(chosen, key=lambda one: one.order)]
            printed = list(notes)
            if request.beside:
                best, which = fastest(lab, case, gpu, timed)
                rungs.append(replace(best, ladder=rungs[0].ladder))
                printed.append(which)
            result.append(
                ladder.Prediction(
                    gpu=gpu.name,
                    assumed=gpu.origins("assumed"),
                    lab=lab.name,
                    case=choice.shown_case(lab, case),
                    size=in_words(size, ","),
                    items=items,
                    flops=flops,
                    rungs=rungs,
                    notes=printed if all(rung.compiled for rung in rungs) else [*printed, NO_NVCC],
                )
            )
    return result


def fastest(
    lab: Lab, case: Case, gpu: gpus.Gpu, timed: Callable[[Variant], ladder.Rung]
) -> tuple[ladder.Rung, str]:
    """The lab's variant with the least predicted time, and of how many.

    The default comes first, then the others from the end of its ladder, as long as time is left.
    """
    default = registry.default(lab, case, "cuda", gpu.features & host_features())
    every, _ = choice.select(lab, case, choice.ALL, "cpu", host_features())
    others = [one for one in every if one.name != default.name and not one.precision]
    others = [one for one in others if gpu.features.issuperset(one.requires)]
    rungs, began = [timed(default)], time.monotonic()
    for variant in sorted(others, key=lambda one: (one.ladder != default.ladder, -one.order)):
        if time.monotonic() - began > BESIDE_S:
            break
        rungs.append(timed(variant))
    best = min(rungs, key=lambda one: float("inf") if one.ms is None else one.ms)
    left = 1 + len(others) - len(rungs)
    which = f"{best.variant}: the fastest of the lab's {len(rungs)} variants"
    if left:
        which += f" that were predicted in {BESIDE_S:.0f} s; without --kernel {left} more are"
    return best, which
