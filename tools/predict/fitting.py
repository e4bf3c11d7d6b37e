"""The model's constants, fitted on the H100's ladders alone."""

import math
from dataclasses import asdict, replace

from cudalab.predict.model import Constants
from tools.predict.scores import recomputed
from tools.predict.stored import FITTED_ON, pairs

MAX_MISS = 0.1  # of a squared logarithm: rungs off by more than a third count no more in the fit


def fit() -> dict[str, float]:
    """The constants for which the H100's ladders are nearest, found one factor at a time."""
    gpu, found = pairs(FITTED_ON)
    best = {**asdict(Constants()), "launch_us": gpu.launch_us}

    def cost(trial: dict[str, float]) -> float:
        k = Constants(**{name: value for name, value in trial.items() if name != "launch_us"})
        there = replace(gpu, launch_us=trial["launch_us"])
        logs = (math.log(recomputed(pair, there, k) / pair.measured_s) for pair in found)
        return sum(min(log * log, MAX_MISS) for log in logs)

    for step in (1.5, 1.2, 1.08, 1.03, 1.01):
        moved = True
        while moved:
            trials = [{**best, name: best[name] * f} for name in best for f in (step, 1 / step)]
            nearest = min((one for one in trials if one["overlap"] >= 1), key=cost)
            moved = cost(nearest) < cost(best) - 1e-9
            best = nearest if moved else best
    return best
