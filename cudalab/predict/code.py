"""The instructions of a kernel, as nvcc emits them: what they cost, and what waits for what.

PTX names each instruction's source line, so the counts of a profile, which are by line, tell how
often each stretch of it runs.
"""

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from cudalab.backends.cuda import nvcc
from cudalab.language.source import QUOTED, Source, unquoted, with_defines
from cudalab.predict import kept
from cudalab.predict.gpus import Gpu
from cudalab.predict.instructions import BARRIER, Block, Instruction, Key, merge

_ENTRY = re.compile(
    r"^\.(?:visible|weak) \.entry (\w+)\(.*?^\{\n(.*?)^\}", re.DOTALL | re.MULTILINE
)
_FILE = re.compile(rf"^\s*\.file\s+(\d+)\s+{QUOTED}", re.MULTILINE)
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+))?")
_LABELS = re.compile(r'^#line 1 "([^"]*)"$', re.MULTILINE)
_LABEL = re.compile(r"(\$\w+):")
_INSTRUCTION = re.compile(r"\s*(?:(@!?%\w+)\s+)?([a-z][\w.:]*)(?:\s+([^;]*))?;")
_REGISTER = re.compile(r"%[a-z]+\d+")
_VECTOR = re.compile(r"\.v([248])\.")
_WIDTH = re.compile(r"\.(?:[bsuf]|bf)(\d+)$")
_KINDS = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}
ROUNDS = 200  # of expectation maximisation
_WARP = ("shfl", "vote", "match", "redux")
_JUMPS = ("bra", "ret", "exit", "brx", "trap")


@dataclass(frozen=True)
class Code:
    """A compiled kernel."""

    blocks: list[Block]
    registers: int
    shared_bytes: int  # static
    local_bytes: int  # of a thread

    def parts(self) -> dict[Key, float]:
        """The share of each line's accesses and warp operations that take turns in L1.

        Merged loads take one turn together. Of the warp operations, only shuffles move data.
        """
        every: Counter[Key] = Counter()
        left: Counter[Key] = Counter()
        for one in (one for block in self.blocks for one in block.instructions):
            if one.key:
                every[one.key] += 1
                left[one.key] += one.takes_turn
        return {key: left[key] / number for key, number in every.items()}


def compiled(source: Source, defines: Mapping[str, str | int], arch: str) -> dict[str, Code]:
    """The kernels of a file by name. NoDeviceError without nvcc."""
    ptx, log = listing(source, defines, arch)
    files = own_files(ptx, source)
    return {name: _code(name, body, files, log) for name, body in _ENTRY.findall(ptx)}


def listing(source: Source, defines: Mapping[str, str | int], arch: str) -> tuple[str, str]:
    """PTX, and what the assembler says of each kernel. NoDeviceError without nvcc."""
    compiler = nvcc.find_nvcc(arch)
    text = with_defines(source.text, defines)
    name = kept.key(compiler, nvcc.release(compiler), arch, text)
    stored = kept.load(name)
    if stored is None:
        stored = _compile(compiler, source.label, text, arch)
        kept.save(name, stored)
    ptx, log = stored
    return ptx, log


def _compile(compiler: Path, label: str, text: str, arch: str) -> tuple[str, str]:
    """PTX, and what the assembler says of each kernel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.cu").write_text(text, encoding="utf-8")
        keep = ("-cubin", "-keep", "-keep-dir", name, "-Xptxas", "-v", "-o", f"{name}/kernel.cubin")
        command = (str(compiler), *nvcc.FLAGS, f"-arch={arch}", *keep, f"{name}/kernel.cu")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise nvcc.rejection(label, done.stdout + done.stderr)
        (ptx,) = folder.glob("*.ptx")
        return ptx.read_text(encoding="utf-8"), done.stdout + done.stderr


def own_files(ptx: str, source: Source) -> dict[int, str]:
    """The source's own files by their number in PTX, under the names that messages use."""
    return files(ptx, _LABELS.findall(source.text))


def files(ptx: str, labels: Sequence[str]) -> dict[int, str]:
    """The files of PTX that have one of `labels`, by their number."""
    result = {}
    for number, quoted in _FILE.findall(ptx):
        path = unquoted(quoted)
        own = [label for label in labels if path == label or path.endswith(f"/{label}")]
        if own:
            result[int(number)] = max(own, key=len)
    return result


def _code(name: str, body: str, files: Mapping[int, str], log: str) -> Code:
    about = log.partition(f"'{name}'")[2].partition("Compiling entry")[0]

    def number(pattern: str) -> int:
        match = re.search(pattern, about)
        return int(match[1]) if match else 0

    return Code(
        blocks=_blocks(body, files),
        registers=number(r"Used (\d+) registers"),
        shared_bytes=number(r"(\d+) bytes smem"),
        local_bytes=number(r"(\d+) bytes stack frame"),
    )


def _blocks(body: str, files: Mapping[int, str]) -> list[Block]:
    """The basic blocks in the order of the text."""
    blocks, labels, jumps, place = [Block()], dict[str, int](), list[tuple[int, str]](), ("", 0)
    for line in body.splitlines():
        if match := _LOC.match(line):
            place = _place(match, files) or place
        elif match := _LABEL.match(line):
            if blocks[-1].instructions:
                blocks.append(Block())
            labels[match[1]] = len(blocks) - 1
        for match in _INSTRUCTION.finditer(line.partition("//")[0]):
            blocks[-1].instructions.append(_instruction(match, place))
            if match[2].startswith(_JUMPS):
                jumps += [(len(blocks) - 1, to) for to in re.findall(r"\$\w+", match[3] or "")]
                blocks.append(Block())
    for at, label in jumps:
        _jump(blocks, at, labels.get(label, len(blocks)))
    merge(blocks)
    return blocks


def _jump(blocks: list[Block], at: int, to: int) -> None:
    """Note a jump from the end of a block: it ends a loop, or skips a condition."""
    if to <= at and all(block.back is None for block in blocks[to : at + 1]):
        blocks[at].back = to
    for block in blocks[to : at + 1]:
        block.depth += 1
    if to == at + 2 < len(blocks) and blocks[at + 1].is_short:
        blocks[at + 1].is_joined = blocks[to].is_joined = True


def place(line: str, files: Mapping[int, str]) -> tuple[str, int] | None:
    """The place of the source that a line of PTX names, if it does."""
    match = _LOC.match(line)
    return _place(match, files) if match else None


def _place(match: re.Match[str], files: Mapping[int, str]) -> tuple[str, int] | None:
    """The line of the source; for code of CUDA's headers, the line that calls it."""
    for number, line in ((match[1], match[2]), (match[3], match[4])):
        if number and int(number) in files:
            return files[int(number)], int(line)
    return None


def _instruction(match: re.Match[str], place: tuple[str, int]) -> Instruction:
    guard, op, operands = match[1] or "", match[2], match[3] or ""
    parts = op.split(".")
    vector, width = _VECTOR.search(op), _WIDTH.search(op)
    num_bytes = (int(width[1]) // 8 if width else 4) * (int(vector[1]) if vector else 1)
    key: Key | None = None
    if parts[0] in _KINDS and not op.startswith(("ld.param", "ld.const", "ld.local", "st.local")):
        space = "shared" if any(part.startswith("shared") for part in parts) else "global"
        key = (*place, space, _KINDS[parts[0]])
    elif op.startswith("cp.async.c"):
        key, num_bytes = (*place, "global", "load"), 16
        sizes = re.findall(r",\s*(\d+)", operands)
        num_bytes = int(sizes[0]) if sizes else 16
    elif parts[0] in _WARP or op.startswith("bar.warp"):
        key = (*place, "barrier", "warp")
    elif parts[0] in ("bar", "barrier"):
        key = (*place, "barrier", "block")
    writes = parts[0] not in ("st", "red", "bra", "bar", "barrier", "ret", "exit", "cp", "membar")
    first = re.match(r"\{[^}]*\}|[^,]*", operands)
    head = first[0] if first and writes else ""
    sources = _REGISTER.findall(guard + " " + operands[len(head) :])
    return Instruction(
        op,
        key,
        bytes=num_bytes,
        target=tuple(_REGISTER.findall(head)),
        sources=tuple(sources),
        operands=operands,
        is_guarded=bool(guard),
    )


# How long one warp takes alone ------------------------------------------------------------------


def chains(
    code: Code, gpu: Gpu, misses: Mapping[Key, float], local: float, turns: Mapping[Key, float]
) -> list[float]:
    """Cycles of each block in a warp that has the multiprocessor to itself.

    A load from global memory takes the cycles in `misses`, one from local memory `local`; a request
    is issued `turns` times. The second round of a loop counts for its block; the additional time of
    the first one is added to the block before the loop.
    """
    warp = _Warp(gpu, misses, local, turns)
    cycles: list[float] = []
    for block in code.blocks:
        cycles.append(warp.run(block))
        if block.back is not None:
            first = cycles[block.back :]
            cycles[block.back :] = [warp.run(one) for one in code.blocks[block.back : len(cycles)]]
            if block.back:
                cycles[block.back - 1] += max(0.0, sum(first) - sum(cycles[block.back :]))
    return cycles


@dataclass
class _Warp:
    """A warp that has the multiprocessor to itself.

    The compiler moves loads forward within a block, but not before a store to the same memory, nor
    before an atomic. The hardware issues in order, and waits for registers.
    """

    gpu: Gpu
    misses: Mapping[Key, float]
    local: float
    turns: Mapping[Key, float]
    _: KW_ONLY
    now: float = 0.0
    issued: float = 0.0  # without waiting
    begin: float = 0.0  # of the blocks that are joined
    ready: dict[str, float] = field(default_factory=dict)  # when a register has its value
    stored: dict[str, float] = field(default_factory=dict)  # when a memory was last written

    def run(self, block: Block) -> float:
        """The cycles until the last instruction of a block is issued."""
        before = self.now
        if not block.is_joined:
            self.begin = self.issued = self.now
        for one in block.instructions:
            start = max([self.begin, *(self.ready.get(name, 0.0) for name in one.sources)])
            self.issued += one.cost()
            if one.key:
                self.issued += self.turns.get(one.key, 1.0) - 1
                start = self._access(one, one.key, start)
            self.now = max(self.now, start, self.issued)
            for name in one.target:
                self.ready[name] = start + self._latency(one)
        return self.now - before

    def _access(self, one: Instruction, key: Key, start: float) -> float:
        """When an access or a barrier can be issued."""
        if key[2:] == BARRIER:
            self.begin = self.issued = start = max(start, self.now, self.issued)
            self.stored = dict.fromkeys(("shared", "global"), start)
        if key[3] in ("load", "atomic"):
            start = max(start, self.stored.get(one.space, 0.0))
        if key[3] == "store":
            self.stored[one.space] = start
        elif key[3] == "atomic":
            self.stored = dict.fromkeys(("shared", "global"), start)
        return start

    def _latency(self, one: Instruction) -> float:
        """Cycles until its result can be used."""
        gpu, cost = self.gpu, one.cost()
        if one.key and one.space == "global":
            known = self.misses.get(one.key, gpu.dram_latency)
            return 2 * gpu.l2_latency if one.key[3] == "atomic" else known
        if one.key and one.space == "shared":
            return gpu.shared_latency * (2 if one.key[3] == "atomic" else 1)
        if one.key:
            return gpu.shuffle_latency
        if one.space == "local":
            return self.local
        if one.unit() == "slow":
            return 5 * gpu.issue_latency
        return gpu.issue_latency * max(min(cost, 6), cost / 3) if cost else 0.0


# How often each block runs ----------------------------------------------------------------------


def frequencies(code: Code, executed: Mapping[Key, float], warps: float) -> list[float]:
    """How often warps execute each block: what explains the counts of all lines.

    `executed` has the requests of each line, times the bytes of a lane. Expectation maximisation;
    a barrier weighs more, since no lane's predicate turns it off. A block with an access that the
    profile never saw is a path that was not taken.
    """
    lines = {key[:2] for key in executed}
    blocks = code.blocks
    rows = _anchors(blocks, executed, lines)
    seen = {i for row in rows.values() for i in row}
    often = [warps * (8.0**block.depth if i in seen else 1) for i, block in enumerate(blocks)]
    for _ in range(ROUNDS):
        up, down = [0.0] * len(blocks), [0.0] * len(blocks)
        for key, row in rows.items():
            factor = (20 if key[2:] == BARRIER else 1) / sum(row.values())
            explained = sum(weight * often[i] for i, weight in row.items()) or 1e-9
            for i, weight in row.items():
                up[i] += factor * weight * executed[key] / explained
                down[i] += factor * weight
        for i in seen:
            often[i] *= up[i] / down[i]
            if not blocks[i].depth:
                often[i] = min(often[i], warps)
    for i, block in enumerate(blocks):
        if i not in seen and not block.is_taken(lines):
            often[i] = 0.0
        elif i not in seen and block.depth:  # without an access: as the nearest of its loop
            near = [(abs(i - j), often[j]) for j in seen if blocks[j].depth == block.depth]
            often[i] = min(near)[1] if near else warps
    return often


def _anchors(
    blocks: Sequence[Block], executed: Mapping[Key, float], lines: Collection[tuple[str, int]]
) -> dict[Key, dict[int, int]]:
    """What each block, by its index, adds to the count of a line whenever it runs."""
    rows: dict[Key, dict[int, int]] = {}
    for i, block in enumerate(blocks):
        for one in block.instructions if block.is_taken(lines) else ():
            if one.key is not None and one.key in executed:
                row = rows.setdefault(one.key, {})
                row[i] = row.get(i, 0) + one.weight
    return rows
