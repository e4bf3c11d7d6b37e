"""Adds to a kernel's assembly, for the check build, the place from which each call is made.

The compiler puts a call of a hook before every access to memory and at the start of every basic
block. The hook knows its return address; the tables added here say which line that is, whether the
block ends in a branch, and how many floating-point operations it holds. So neither debug
information nor a tool that reads it is needed, and inlined code is no special case.

Each shared array and each variable stands behind an unused zone, and what never changes before one,
too, so that running over an end does not hit the next array or variable unnoticed.
"""

from cudalab.backends.cpu import layout
from cudalab.backends.cpu.assembly import control_flow
from cudalab.backends.cpu.assembly.hooks import with_hooks
from cudalab.backends.cpu.assembly.listing import Counts, Listing, numbered

_BY_GCC = '\t.ident\t"GCC'


def annotate(
    text: str,
    sources: set[str],
    *,
    is_program: bool,
    before: Counts | None = None,
    is_last: bool = True,
) -> tuple[str, Counts]:
    """Add labels behind calls, the tables, and the zones behind shared arrays.

    `sources` are the names that #line directives give to files. Of a program the host's accesses
    are observed, too. The tables continue those of the files `before`; the counts of all follow.
    """
    before = before or Counts()
    listing = Listing(sources, before, is_program=is_program)
    rows = text.splitlines()
    if _BY_GCC in text:
        rows = with_hooks(rows)
    for row in rows:
        listing.read(row)
    listing.end()
    control_flow.Flow(listing.blocks, listing.starts, listing.functions).classify()
    for number, site in listing.hooks.items():
        listing.rows[number] = _block_hook(site, listing.rows[number])
    sites = [*listing.sites, *listing.blind()]
    new = dict.fromkeys(name for name in listing.files.values() if name not in before.files)
    counts = Counts(
        sites=before.sites + len(sites),
        files=(*before.files, *new),
        functions=before.functions + len(listing.functions),
    )
    tables = _tables_of(sites, listing.files, before, counts)
    if is_last:
        tables += ['\t.section\t.data.rel.ro,"aw"', "\t.p2align\t3"]
        tables += [*_exported("cudalab_check_num_sites"), f"\t.quad\t{counts.sites}"]
        tables += [*_exported("cudalab_check_num_files"), f"\t.quad\t{len(counts.files)}"]
    return "\n".join(listing.rows + tables) + "\n", counts


def _block_hook(site: control_flow.Site, row: str) -> str:
    """The call at the start of a block, in the place of `row`; empty in headers."""
    if site.flags & layout.IS_LIBRARY:
        return row.replace(control_flow.BLOCK_HOOK, "cudalab_block_of_library")
    if site.flags & layout.IS_HEADER:
        site.flags |= layout.NO_CALL
        return ""
    hook = "cudalab_block"
    hook += "_end" if site.flags & layout.IS_END else ""
    hook += "_join" if site.flags & layout.IS_JOIN else ""
    return numbered(row.replace(control_flow.BLOCK_HOOK, hook), site, 0)


def _tables_of(
    sites: list[control_flow.Site], files: dict[int, str], before: Counts, counts: Counts
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


def _exported(symbol: str) -> list[str]:
    return [f"\t.globl\t{symbol}", f"{symbol}:"]
