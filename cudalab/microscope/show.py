"""Shows a profile on the terminal."""

from cudalab.microscope import annotate
from cudalab.microscope.document import document
from cudalab.microscope.profile import Profile
from cudalab.output import terminal


def show(profile: Profile) -> None:
    """Print the table of all kernels, the verdicts on conflicts, and each kernel line by line."""
    terminal.grid(annotate.summary_grid(document(profile)))
    terminal.lines([*(f"{variant.name}: {variant.verdict}" for variant in profile.variants), ""])
    width = terminal.console().width
    for variant in profile.variants:
        if variant.kernels:
            heading = f"{variant.name}: {variant.summary}" if variant.summary else variant.name
            terminal.lines([heading, ""])
        for kernel in variant.kernels:
            terminal.grid(annotate.access_grid(variant, kernel))
            for one in annotate.listings(variant, kernel, width):
                terminal.listing(one, annotate.shallow(variant.texts[one.label]))
