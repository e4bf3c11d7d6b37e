"""Predicted times beside measured ones: fits the model's constants, and scores it.

python -m tools.predict count GPU=SHARE,... ...   predict all ladders of a GPU at the size of bench
                                                  divided by each SHARE: h100=1 h200=1,4,16; of a
                                                  part of a GPU: h200:88=1
python -m tools.predict planted GPU               predict a kernel with planted strides:
                                                  tests/predict/planted_stride.cu
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

from __future__ import annotations

import sys
from pathlib import Path

from cudalab.bench.document import load
from tools.predict import outside, part, tables
from tools.predict.counting import count, planted
from tools.predict.fitting import fit
from tools.predict.stored import add, gpu_of


def main() -> None:
    """Run one of the commands."""
    match sys.argv[1:]:
        case ["count", *gpus_and_shares]:
            named = (each.partition("=") for each in gpus_and_shares)
            count({gpu: [int(share) for share in text.split(",")] for gpu, _, text in named})
        case ["planted", name]:
            planted(name)
        case ["add", name, *paths]:
            add(name, [load(Path(path)) for path in paths])
        case ["part", some, seconds, *names]:
            part.measure(int(some), float(seconds), names)
        case ["outside", folder]:
            outside.predict(Path(folder))
        case ["compare", path, name]:
            print(tables.compared(gpu_of(path), gpu_of(name)), end="")
        case ["fit"]:
            print(fit())
        case ["score"]:
            print(tables.scores(), tables.without_terms(), tables.misses(), sep="\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
