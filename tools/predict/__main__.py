"""Predicted times beside measured ones: fits the model's constants, and scores it.

python -m tools.predict count GPU=SHARE,... ...   predict all ladders of a GPU at the size of bench
                                                  divided by each SHARE: h100=1 h200=1,4,16; of a
                                                  part of a GPU: h200:88=1
python -m tools.predict planted GPU               predict a kernel with planted strides:
                                                  tests/predict/planted_stride.cu
python -m tools.predict others GPU                predict all ladders at sizes between those
python -m tools.predict today NAME                store what the model of today says of predictions
                                                  that were measured
python -m tools.predict targets                   add predictions of the H100 at the other sizes of
                                                  docs/results/targets
python -m tools.predict again NAME                compute times anew from the stored work
python -m tools.predict fit                       fit the constants on the H100's ladders
python -m tools.predict add NAME BENCH.json...    store what `cudalab bench --json` has measured
                                                  beside the predictions of NAME: nvidia-h200
python -m tools.predict part COUNT SECONDS LAB... measure ladders on a part of the GPU here, and
                                                  store the times; SECONDS for each
python -m tools.predict outside FOLDER            predict the kernels of siboehm/SGEMM_CUDA
python -m tools.predict compare FILE.toml GPU     print what `device --measure` has written beside
                                                  the file of a GPU
python -m tools.predict score                     print what docs/predict.md says of the model

docs/results/predict has the predictions, and times at sizes that docs/results/bench has not. Only
the H100's ladders are fitted on; the predictions for other GPUs were stored before their times
were.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from cudalab.bench.document import load
from tools.predict import outside, part, tables
from tools.predict.counting import again, count, count_again, count_others, count_targets, planted
from tools.predict.fitting import fit
from tools.predict.stored import add, gpu_of

COMMANDS: dict[str, Callable[..., object]] = {
    "count": lambda *texts: count(dict(map(shares, texts))),
    "planted": planted,
    "others": count_others,
    "today": count_again,
    "targets": count_targets,
    "again": again,
    "fit": lambda: print(fit()),
    "add": lambda name, *paths: add(name, [load(Path(path)) for path in paths]),
    "part": lambda some, seconds, *names: part.measure(int(some), float(seconds), names),
    "outside": lambda folder: outside.predict(Path(folder)),
    "compare": lambda path, name: print(tables.compared(gpu_of(path), gpu_of(name)), end=""),
    "score": lambda: print(tables.scores(), tables.without_terms(), tables.misses(), sep="\n"),
}


def shares(text: str) -> tuple[str, list[int]]:
    """Read a GPU and the shares of the sizes: h200=1,4,16."""
    gpu, _, numbers = text.partition("=")
    return gpu, [int(number) for number in numbers.split(",")]


def main(command: str = "", *words: str) -> None:
    """Run one of the commands."""
    if command not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[command](*words)


if __name__ == "__main__":
    main(*sys.argv[1:])
