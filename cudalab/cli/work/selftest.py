"""What `selftest` does: have the checker judge submissions whose verdicts are known."""

from pathlib import Path

from cudalab import labs
from cudalab.backends import choose_device, open_device
from cudalab.checker import selftest as tests
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.cli import params
from cudalab.errors import ExitCode
from cudalab.output import live, terminal
from cudalab.system.machine import usable_cores


def selftest(*, names: tuple[str, ...], device: str, sandbox: str, json_path: Path | None) -> int:
    """Judge all submissions, and print the verdicts."""
    device = choose_device(device)
    selected = names or labs.names()
    box = sandboxes.choose(sandbox)
    with open_device(device) as opened:
        features = opened.features
    jobs = list(tests.jobs(selected, device, features))
    with live.BenchProgress() as progress:
        progress.begin(f"selftest: {len(jobs)} submissions, sandbox {box.kind}")

        def show_progress(finding: tests.Finding, done: int) -> None:
            progress.update(done / len(jobs), f"{done} of {len(jobs)} {finding.job.name}")

        results = tests.run(jobs, box, device, usable_cores(), show_progress)
    wrong = [one for one in results if not one.right]
    leaks = tests.leaks(results)
    accepted = sandbox == "auto" or len(wrong) > len(leaks)
    status = ExitCode.WRONG_ANSWER if wrong and accepted else ExitCode.OK
    if params.write_json(json_path, tests.document(results, box, device)):
        return status
    terminal.table(
        "Cheats and mistakes",
        ["verdict", "lab", "submission", "what it does", "why"],
        [
            [
                "rejected" if one.right else "OPEN" if one in leaks else "ACCEPTED",
                one.job.lab,
                one.job.name,
                one.job.what if one.job.group == "cheats" else "",
                one.why,
            ]
            for one in results
            if not one.job.must_pass
        ],
    )
    terminal.lines(
        f"WRONG: the variant {one.job.lab} {one.job.name} was rejected: {one.why}"
        for one in wrong
        if one.job.must_pass
    )
    terminal.lines(tests.summary(results, box, device))
    return status
