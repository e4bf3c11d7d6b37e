"""The tables of an instrumented library, in assembly: its sites, and the names of its files."""

from dataclasses import dataclass

from cudalab.backends.cpu.control_flow import Site


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the tables of the files before, which are linked to one library, hold."""

    sites: int = 0
    files: tuple[str, ...] = ()  # the names that sources have there
    functions: int = 0


def tables_of(
    sites: list[Site], files: dict[int, str], before: Counts, counts: Counts
) -> list[str]:
    """The tables of sites and file names, as check_sites.h declares them.

    They have sections of their own, which a linker puts together in the order of the files. The
    first file has their names.
    """
    index = {number: counts.files.index(name) for number, name in files.items()}
    is_first = before == Counts()
    rows = ['\t.section\tcudalab_sites,"aw"', "\t.p2align\t3"]
    rows += _exported("cudalab_check_sites") if is_first else []
    for s in sites:
        branch = index.get(s.branch[0], 0), s.branch[1]
        operations = s.floats, s.doubles
        values = index.get(s.file, 0), s.line, s.flags, *branch, *operations, s.function, s.head
        rows.append(f"\t.quad\t.Lcudalab_site_{s.number}")
        rows.append("\t.long\t" + ", ".join(map(str, values)))
        rows.append("\t.p2align\t3")
    rows += ['\t.section\tcudalab_files,"aw"', "\t.p2align\t3"]
    rows += _exported("cudalab_check_files") if is_first else []
    new = range(len(before.files), len(counts.files))
    rows += [f"\t.quad\t.Lcudalab_file_{position}" for position in new]
    rows.append('\t.section\t.rodata.cudalab,"a"')
    for position in new:
        rows.append(f".Lcudalab_file_{position}:")
        name = counts.files[position].encode() + b"\0"
        rows.append("\t.byte\t" + ", ".join(str(byte) for byte in name))
    return rows


def lengths(counts: Counts) -> list[str]:
    """How long the tables of all files are."""
    rows = ['\t.section\t.data.rel.ro,"aw"', "\t.p2align\t3"]
    rows += [*_exported("cudalab_check_num_sites"), f"\t.quad\t{counts.sites}"]
    return [*rows, *_exported("cudalab_check_num_files"), f"\t.quad\t{len(counts.files)}"]


def _exported(symbol: str) -> list[str]:
    return [f"\t.globl\t{symbol}", f"{symbol}:"]
