"""The steps of `cudalab learn`: each start fails for the stated reason, each solution passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cudalab import labs
from cudalab.learn.path import find, steps, worth
from cudalab.watch.resident import Desk
from cudalab.watch.watching import KernelWatcher

README = Path(__file__).parents[2] / "kernels" / "reduce" / "README.md"
LABS = sorted({step.text.lab for step in steps()})


def judged(step, text, path, desk):
    path.write_text(text)
    lab = labs.get(step.text.lab)
    options = dict(step.text.options)
    return KernelWatcher(lab, path, path.name, desk, options=options, climbs=False).judge()


@pytest.mark.parametrize("lab", LABS)
def test_starts_fail_for_the_stated_reason_and_solutions_pass(lab, tmp_path):
    wrong = []
    with Desk() as desk:
        for step in (one for one in steps() if one.text.lab == lab):
            before = judged(step, step.start, tmp_path / "my.cu", desk)
            if step.solved(before) or step.text.start_fails not in step.fails(before):
                wrong.append((step.name, "start", step.fails(before)))
            after = judged(step, step.solution, tmp_path / "my.cu", desk)
            if not step.solved(after):
                wrong.append((step.name, "solution", step.fails(after), step.missing(after)))
    assert not wrong


def test_there_are_enough():
    names = [step.name for step in steps()]
    assert len(steps()) >= 24
    assert sum("broken" in name for name in names) >= 8
    assert [step.number for step in steps()] == list(range(1, len(names) + 1))


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.name)
def test_a_step_fits_on_a_screen_and_has_three_hints(step):
    text = step.text
    assert len(text.hints) == 3
    assert len(text.title) <= 60
    assert sum(-(-len(" ".join(part.split())) // 70) + 1 for part in text.task.split("\n\n")) <= 20
    assert text.after.strip()
    assert find(str(step.number)) is find(step.name) is step
    assert all(ord(letter) < 128 for letter in text.task + text.after + "".join(text.hints))


def test_what_an_idea_was_worth_is_what_the_ladder_says():
    said = re.fullmatch(r"On an (\w+) it is (\S+) times as fast as .*", worth(find("no-conflicts")))
    rung = find("no-conflicts").text.rung
    (line,) = re.findall(rf"^\|\s*\[`{rung}`\].*$", README.read_text(), re.MULTILINE)
    assert f"| {said[2]} |" in re.sub(r" +", " ", line)
    assert worth(find("broken-race")) == ""
