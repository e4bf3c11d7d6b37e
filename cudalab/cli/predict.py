"""The command `predict`: a ladder's times on a GPU that is not there.

Nothing heavy is imported before it runs.
"""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.cli.failures import within
from cudalab.cli.options import (
    CASE_HELP,
    EXISTING,
    OUT,
    CaseCommand,
    Choice,
    Sizes,
    dist_option,
    exclude,
    is_stdout,
    json_option,
    lines,
    quiet_option,
    seconds_option,
    seed_option,
    variants_option,
    write_json,
)
from cudalab.cli.profile import PROFILE_KILL_AFTER_S, choose
from cudalab.errors import CudalabError, UsageError, install_command
from cudalab.labs.sizes import in_words
from cudalab.system.supervise import prints_to_stderr

if TYPE_CHECKING:
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.predict.counts import Generated
    from cudalab.predict.gpus import Gpu
    from cudalab.predict.ladder import Prediction, Rung

BESIDE_S = 20.0  # for the lab's variants beside a kernel file; what they do is kept
NO_NVCC = (
    "no nvcc here, so nothing is known of the instructions: the order is likely, the times are "
    f"rough; {install_command('nvcc')} brings it"
)


class _LabName(Choice):
    """The name of a lab; programs are not predicted."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if str(value).endswith(".cu"):
            self.fail(
                f"whole programs are not predicted, only kernels of labs: cudalab predict LAB "
                f"--kernel {value} predicts a kernel file that a lab can launch",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


@click.command(
    "predict",
    cls=CaseCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab predict transpose --gpu rtx3060",
                "cudalab predict reduce --variants sequential,warp_shuffle --n 2^22 --gpu t4",
                "cudalab predict matmul --kernel my.cu --gpu h200 --json my.json",
                "cudalab predict matmul --gpu rtx3060 --html matmul.html",
            ),
            CASE_HELP,
            "docs/predict.md has the model, and how far it is from what was measured.",
        ]
    ),
)
@click.argument("lab", type=_LabName(labs.names()), metavar="LAB")
@click.option(
    "--gpu",
    metavar="NAME|FILE.toml",
    help="a100, a6000, b200, h100, h200, rtx3060, rtx4090, t4, or a file of the same form.",
)
@variants_option("all (that the CPU device can count), or comma-separated names.", "all")
@click.option("--kernel", type=EXISTING, metavar="FILE.cu", help="Predict your own file only.")
@click.option(
    "--n",
    "sizes",
    type=Sizes(),
    metavar="SIZES",
    help="Sizes. Default: the one that bench measures.",
)
@dist_option
@seed_option
@json_option("Write all times, limits and counts as JSON; - is stdout.")
@click.option("--html", "html_path", type=OUT, metavar="FILE", help="Write one page for a browser.")
@seconds_option(
    "--kill-after",
    f"Abort after this time. Default: {PROFILE_KILL_AFTER_S:g} with --kernel, else none.",
)
@quiet_option
def predict(
    *,
    lab: str,
    gpu: str | None,
    variants: str,
    kernel: Path | None,
    sizes: list[Size] | None,
    dist: str | None,
    seed: int,
    json_path: Path | None,
    html_path: Path | None,
    kill_after: float | None,
    **options: Any,
) -> int:
    """Predict each rung's time on a GPU, and what limits it, without that GPU.

    The CPU device counts what the kernels do, and nvcc, where there is one, compiles them. A model
    with few constants turns that into times; docs/predict.md says how far they are from measured
    ones.
    """
    if gpu is None:
        from cudalab.predict.gpus import names

        raise UsageError(
            "--gpu is missing: the GPU to predict for",
            hint=f"one of {', '.join(names())}, or a file of the same form",
        )
    if kernel:
        if variants != "all":
            exclude("--variants", "--kernel")
        kill_after = kill_after or PROFILE_KILL_AFTER_S

    def run() -> int:
        from cudalab.formats import save
        from cudalab.output import terminal
        from cudalab.predict import gpus, ladder, show
        from cudalab.predict.show import page

        predictions = predict_sizes(
            labs.get(lab),
            gpu,
            variants,
            kernel,
            sizes,
            dist,
            seed,
            options,
            beside=kernel is not None and not is_stdout(json_path),
        )
        rungs = [rung for each in predictions for rung in each.rungs]
        if all(rung.failed for rung in rungs):
            raise CudalabError("\n".join(dict.fromkeys(rung.failed for rung in rungs)))
        if not is_stdout(json_path):
            for each in predictions:
                terminal.grid(show.grid(each))
        write_json(json_path, ladder.Predictions(predictions=predictions))
        if html_path:
            save(html_path, page(predictions, gpus.load(gpu)))
        return 0

    return within(kill_after, run)


def predict_sizes(
    lab: Lab,
    gpu_name: str,
    variants: str,
    kernel: Path | None,
    sizes: list[Size] | None,
    dist: str | None,
    seed: int,
    case_options: dict[str, Any],
    *,
    beside: bool = False,
) -> list[Prediction]:
    """Predict the chosen variants at each size; beside a kernel file the lab's fastest, too."""
    from cudalab.bench.choice import case_of, shown_case
    from cudalab.output import live
    from cudalab.predict import gpus, growth, ladder
    from cudalab.predict.counts import Generated

    gpu = gpus.load(gpu_name)
    case = case_of(lab, case_options)
    chosen, notes = choose(lab, case, kernel, variants, "cpu")
    distribution = lab.distribution(dist)
    result = []
    with (
        live.BenchProgress() as progress,
        tempfile.TemporaryDirectory() as name,
        prints_to_stderr(),
    ):
        progress.begin(f"predict {lab.name}")

        for size in sizes or [lab.teaching.bench_size(case, "cuda")]:
            data = Generated(lab, case, distribution, seed, folder=Path(name))
            items, flops = growth.amount(data, size)

            def timed(variant: Variant, size: Size = size, data: Generated = data) -> Rung:
                progress.step(variant.name)
                (rung,) = ladder.predict(lab, variant, case, size, data, [gpu])
                return rung

            rungs = [timed(variant) for variant in sorted(chosen, key=lambda one: one.order)]
            said = list(notes)
            if beside:
                best, which = fastest(lab, case, gpu, timed)
                rungs.append(replace(best, ladder=rungs[0].ladder))
                said.append(which)
            result.append(
                ladder.Prediction(
                    gpu=gpu.name,
                    assumed=gpu.origins("assumed"),
                    lab=lab.name,
                    case=shown_case(lab, case),
                    size=in_words(size, ","),
                    items=items,
                    flops=flops,
                    rungs=rungs,
                    notes=said if all(rung.compiled for rung in rungs) else [*said, NO_NVCC],
                )
            )
    return result


def fastest(lab: Lab, case: Case, gpu: Gpu, timed: Callable[[Variant], Rung]) -> tuple[Rung, str]:
    """The lab's variant with the least predicted time, and of how many.

    The default comes first, then the others from the end of its ladder, as long as time is left.
    """
    from cudalab.backends import host_features
    from cudalab.labs import registry

    default = registry.default(lab, case, "cuda", gpu.features & host_features())
    every, _ = choose(lab, case, None, "all", "cpu")
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
