"""What the model says of a right kernel on a GPU that is not there; a remark, never points.

`cudalab predict` counts the submission as a program inside the sandbox, the reference here.
"""

import json
import tempfile
from contextlib import suppress
from pathlib import Path

from cudalab.backends import gpu_device, host_features
from cudalab.checker.submit.kernel import TIMING_LIMITS, Kernel
from cudalab.errors import CudalabError, UsageError
from cudalab.labs import registry
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.predict import gpus, ladder, show
from cudalab.predict.counts import Generated
from cudalab.system import records


def remarks(submission: Kernel, case: Case, gpu: gpus.Gpu, reference: str | None) -> list[str]:
    """The submission's time beside the reference's; nothing where the model does not know one."""
    lab = submission.lab
    variant = _reference(submission, case, gpu, reference)
    size = lab.teaching.bench_size(case, gpu_device())
    if variant is None:
        return []
    ours = _read(submission.predicted(lab.words(case), gpus.text(gpu), TIMING_LIMITS))
    with tempfile.TemporaryDirectory() as name:
        data = Generated(lab, case, lab.distributions[0], 0, folder=Path(name))
        (theirs,) = ladder.predict(lab, variant, case, size, data, [gpu])
    if ours is None or ours.compiled != theirs.compiled:
        return []
    return sentences(ours, theirs, gpu, size)


def _read(data: bytes) -> ladder.Rung | None:
    """The only rung of the prediction in JSON; the submission has run in its process."""
    with suppress(ValueError, CudalabError):
        (prediction,) = records.read(ladder.Predictions, json.loads(data)).predictions
        (rung,) = prediction.rungs
        return rung
    return None


def sentences(ours: ladder.Rung, theirs: ladder.Rung, gpu: gpus.Gpu, size: Size) -> list[str]:
    """The comparison in words."""
    if not (ours.ms and theirs.ms):
        return []
    ratio = ours.ms / theirs.ms
    if ladder.INTERVAL > ratio > 1 / ladder.INTERVAL:
        compared = f"about as fast as {theirs.variant}"
    else:
        word = "slower" if ratio > 1 else "faster"
        compared = f"about {max(ratio, 1 / ratio):.1f} times {word} than {theirs.variant}"
    text = (
        f"a model, not a measurement: on an {gpu.name} with n = {in_words(size, ',')} this would "
        f"be {compared} ({show.ms(ours.ms)} ms, {show.ms(theirs.ms)} ms), because of "
        f"{show.LIMITS[ours.limit]}; {theirs.variant} is limited by {show.LIMITS[theirs.limit]}"
    )
    return [text]


def _reference(submission: Kernel, case: Case, gpu: gpus.Gpu, name: str | None) -> Variant | None:
    """The named variant, or the one that the GPU takes, of those that can be counted."""
    features = gpu.features & host_features()
    try:
        if name:
            return registry.find(submission.lab, name)
        return registry.default(submission.lab, case, gpu_device(), features)
    except UsageError:
        return None
