"""The baselines: right answers on the same buffers, and reasons where there is none.

What needs a GPU is marked; the rest checks NumPy's answers, the choice of CUB and its compilation.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import subprocess
import sys
import types
from itertools import product

import numpy as np
import pytest

from cudalab import labs
from cudalab.backends import open_device
from cudalab.backends.cuda import nvcc
from cudalab.backends.meter import open_meter
from cudalab.bench import candidates, measure, measured
from cudalab.bench.baselines import NAMES, baselines, cub, through_cupy, why_not
from cudalab.errors import (
    CudalabError,
    DeviceMemoryError,
    NoDeviceError,
    UsageError,
    install_command,
)
from cudalab.labs.histogram.lab import classes_of_bytes

SIZES = {"matmul": 70, "solve": 40, "transpose": 50, "softmax": 50, "reduce": 1000}
CUDA = pytest.mark.cuda


def cases(lab):
    """Every case of a lab."""
    offered = {axis: values for axis, values in lab.axes.items() if axis not in lab.derived}
    for values in product(*offered.values()):
        try:
            yield lab.complete(dict(zip(offered, values, strict=True)))
        except UsageError:
            continue


def every_case():
    for name in labs.names():
        if not labs.get(name).teaching.libraries.names:
            continue
        for case in cases(labs.get(name)):
            said = "-".join(str(case[axis]) for axis in labs.get(name).axes)
            yield pytest.param(name, case, id=f"{name}-{said}")


def size_of(lab, case):
    n = SIZES.get(lab.name, 5000)
    return (60, 70) if lab.name == "reduce" and case["along"] != "all" else n


def data(lab, case, device, folder, *, dist=None, n=None):
    n = size_of(lab, case) if n is None else n
    return candidates.make_data(lab, case, n, dist or lab.distributions[0], 5, device, folder)


def sampler_of(device):
    return measure.Sampler(device, open_meter(device))


def found(lab, case, device, made, *names):
    return baselines(lab, sampler_of(device), made.inputs, case, made.buffers, names)


def check(lab, case, device, made, candidate):
    """Poisoned, run twice, right both times; the inputs are as they were."""
    judge = measure.Judge(lab, made.inputs, case, device, made.buffers)
    for _ in range(2):
        candidate.poison()
        poisoned = np.ascontiguousarray(candidate.answer()).reshape(-1).view(np.uint8)
        assert (poisoned == measure.POISON).all()
        candidate.run()
        assert judge.mistake(candidate) is None
    assert judge.modified() is None


# NumPy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "case"), list(every_case()))
def test_numpy_is_right(device, tmp_path, name, case):
    lab = labs.get(name)
    made = data(lab, case, device, tmp_path)
    (candidate,) = found(lab, case, device, made, "numpy")
    assert (candidate.name, candidate.kind, candidate.device) == ("numpy", "baseline", "cpu")
    assert not candidate.reads_back
    assert candidate.notes[0].startswith("NumPy ")
    check(lab, case, device, made, candidate)


@pytest.mark.parametrize(
    ("name", "given", "dist", "n"),
    [
        ("radixsort", {"dtype": "float32"}, "few", 3000),
        ("radixsort", {"dtype": "int32", "layout": "pairs"}, "equal", 3000),
        ("radixsort", {"dtype": "float32", "layout": "pairs"}, "few", 3000),
        ("histogram", {"bins": 7}, "zipf", 3000),
        ("histogram", {"bins": 1}, "uniform", 3000),
        ("histogram", {"dtype": "uint32", "bins": 65_536}, "uniform", 3000),
        ("scan", {}, "all-ones", 3_000_000),
        ("scan", {"kind": "inclusive"}, "wide-range", 300_000),
        ("reduce", {"op": "prod", "dtype": "float64"}, "uniform", 1),
        ("matmul", {"shape": True}, "uniform", (3, 50, 7)),
        ("matmul", {"shape": True, "product": "abt"}, "uniform", (3, 50, 7)),
        ("matmul", {"shape": True, "product": "aat"}, "uniform", (3, 50)),
        ("transpose", {}, "index", (3, 50)),
        ("table", {"accuracy": "fast"}, "step", 3000),
    ],
)
def test_numpy_at_the_edges(device, tmp_path, name, given, dist, n):
    lab = labs.get(name)
    case = lab.complete(given)
    made = data(lab, case, device, tmp_path, dist=dist, n=n)
    (candidate,) = found(lab, case, device, made, "numpy")
    check(lab, case, device, made, candidate)


def test_numpy_cannot_solve_what_is_singular(device, tmp_path):
    lab = labs.get("solve")
    case = lab.complete({})
    made = data(lab, case, device, tmp_path, n=4)
    made.inputs.arrays["a"] = np.zeros((4, 4), np.float32)
    (candidate,) = found(lab, case, device, made, "numpy")
    with pytest.raises(CudalabError, match="NumPy: Singular matrix"):
        candidate.run()


def test_numpy_says_how_it_adds(device, tmp_path):
    lab = labs.get("scan")
    case = lab.complete({})
    (candidate,) = found(lab, case, device, data(lab, case, device, tmp_path), "numpy")
    assert candidate.notes[1:] == ["adds in float64"]


@pytest.mark.parametrize("bins", [1, 2, 7, 64, 100, 255, 256])
def test_classes_of_bytes(bins):
    firsts = classes_of_bytes(bins)
    byte = np.arange(256)
    of_byte = np.searchsorted(firsts, byte, "right") - 1
    np.testing.assert_array_equal(of_byte, byte * bins >> 8)


# Reasons -----------------------------------------------------------------------------------------


def test_a_name_that_is_none(device, tmp_path):
    lab = labs.get("reduce")
    case = lab.complete({})
    with pytest.raises(UsageError, match="no baseline is called thrust") as caught:
        found(lab, case, device, data(lab, case, device, tmp_path), "thrust")
    assert caught.value.hint == "expected one of numpy, cupy, cub"


@pytest.mark.parametrize(
    ("name", "lab", "given", "device", "reason"),
    [
        ("cub", "matmul", {}, "cuda", "cub has no matmul"),
        ("cub", "reduce", {}, "cpu", "cub runs on the CUDA device"),
        ("cupy", "matmul", {}, "cpu", "cupy runs on the CUDA device"),
        ("cupy", "scan", {"op": "max"}, "cuda", "cupy scans sums, not max"),
        ("cub", "scan", {"op": "max"}, "cuda", None),
        (
            "cub",
            "reduce",
            {"along": "rows"},
            "cuda",
            "cub is compared on whole arrays, not on rows",
        ),
        ("numpy", "reduce", {"along": "rows"}, "cuda", None),
        ("cupy", "reduce", {"along": "cols"}, "cuda", None),
    ],
)
def test_why_not(name, lab, given, device, reason):
    lab = labs.get(lab)
    assert why_not(name, lab, lab.complete(given), device) == reason


def test_every_lab_is_compared_with_something():
    assert all(why_not("numpy", labs.get(name), {}, "cpu") is None for name in labs.names())


def test_what_does_not_apply_gives_no_candidate(device, tmp_path):
    lab = labs.get("matmul")
    case = lab.complete({})
    assert found(lab, case, device, data(lab, case, device, tmp_path), "cub") == []


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NoDeviceError, match="needs CuPy") as caught:
        through_cupy.load()
    assert caught.value.hint == install_command("baselines")


def test_nothing_heavy_is_loaded_before_it_is_asked_for():
    code = (
        "import sys, cudalab.bench.baselines as b;"
        "heavy = {'cupy', b.__name__ + '.through_cupy', b.__name__ + '.cub'};"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# CUB ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiler():
    try:
        return nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)


def cub_operations():
    """Each distinct library that a case needs, with the first case that needs it."""
    seen = []
    for name in labs.names():
        lab = labs.get(name)
        for case in cases(lab):
            if why_not("cub", lab, case, "cuda") is None:
                for defines in cub.operations(lab, case, np.dtype(case["dtype"])).values():
                    if defines not in seen:
                        seen.append(defines)
                        yield pytest.param(defines, id="-".join(defines.values()))


# One of each kind together: to read CUB's headers takes longer than to compile an operation.
EVERY_KIND = """\
#define OPERATION(a, n) \\
    (sort_pairs(a, n), merge_sort(a, n), histogram(a, n), reduce(a, n, Mean{{}}), \\
     scan(a, n, Min{{}}))
#include "{}"
"""


def test_cub_compiles_and_loads(compiler, tmp_path, monkeypatch):
    """With the toolkit's CUB; all operations, one by one, with --device cuda.

    The host's part is not optimized, which changes no warning.
    """
    source = tmp_path / "every_kind.cu"
    source.write_text(EVERY_KIND.format(cub.SOURCE))
    monkeypatch.setattr(cub, "SOURCE", source)
    flags = ["-O0" if flag == "-O3" else flag for flag in cub.FLAGS]
    monkeypatch.setattr(cub, "FLAGS", (*flags, "-Werror", "all-warnings"))
    (headers, *_) = cub.installed(compiler)
    path = tmp_path / "built" / "cub.so"
    path.parent.mkdir()
    cub.build(compiler, headers, {"ELEMENT": "float"}, "sm_90", path)
    library = cub.Library(path)
    assert library.version() == headers.version
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("lab", "given", "expected"),
    [
        ("radixsort", {}, "unsigned sort_keys"),
        ("radixsort", {"layout": "pairs", "dtype": "int32"}, "int sort_pairs"),
        ("bitonic", {}, "int sort_keys"),
        ("reduce", {"op": "dot"}, "float reduce Dot"),
        ("scan", {"kind": "inclusive", "op": "min"}, "float scan Min 1"),
        ("scan", {}, "float scan Sum 0"),
        ("histogram", {}, "unsigned char histogram"),
    ],
)
def test_the_operation_of_a_case(lab, given, expected):
    lab = labs.get(lab)
    case = lab.complete(given)
    defines = cub.operations(lab, case, np.dtype(case["dtype"]))[""]
    assert " ".join(defines.values()) == expected


def test_a_network_is_compared_with_a_merge_sort_too():
    lab = labs.get("bitonic")
    ways = cub.operations(lab, lab.complete({}), np.dtype("int32"))
    assert ways["merge sort"] == {"ELEMENT": "int", "OPERATION": "merge_sort"}


def package_of(tmp_path, monkeypatch, version, below="cu13/include/cccl"):
    """An installed nvidia-cuda-cccl with that CUB."""
    folder = tmp_path / "nvidia" / below / "cub"
    folder.mkdir(parents=True)
    (folder / "version.cuh").write_text(f"// text\n#define CUB_VERSION {version} // more\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    return folder.parent


@pytest.mark.parametrize("below", ["cu13/include/cccl", "cu13/include", "cuda_cccl/include"])
def test_a_newer_cub_is_a_second_candidate(tmp_path, monkeypatch, below):
    folder = package_of(tmp_path, monkeypatch, 300502, below)
    monkeypatch.setattr(cub, "of_toolkit", lambda _: cub.Headers((3, 0, 1)))
    own, packaged = cub.installed(tmp_path / "nvcc")
    assert (own.name(), packaged.name()) == ("cub", "cub (CCCL 3.5)")
    assert packaged.name("merge sort") == "cub (CCCL 3.5, merge sort)"
    assert packaged == cub.Headers((3, 5, 2), folder)


def test_an_older_cub_is_none(tmp_path, monkeypatch):
    package_of(tmp_path, monkeypatch, 300001)
    monkeypatch.setattr(cub, "of_toolkit", lambda _: cub.Headers((3, 0, 1)))
    assert [headers.name() for headers in cub.installed(tmp_path / "nvcc")] == ["cub"]


def test_without_cub(tmp_path, monkeypatch):
    monkeypatch.setattr(cub, "of_toolkit", lambda _: None)
    monkeypatch.setattr(cub, "of_package", lambda: None)
    with pytest.raises(NoDeviceError, match="needs CUB's headers") as caught:
        cub.installed(tmp_path / "nvcc")
    assert install_command("baselines") in caught.value.hint


def test_the_toolkit_s_cub_is_found(compiler):
    headers = cub.of_toolkit(compiler)
    assert headers is None or headers.version >= (2, 0, 0)


def test_a_cache_entry_for_each_thing_that_decides_it(tmp_path):
    compiler = tmp_path / "nvcc"
    compiler.write_text("")
    toolkit, newer = cub.Headers((3, 0, 1)), cub.Headers((3, 5, 0), tmp_path)
    keys = {"OPERATION": "sort_keys", "ELEMENT": "int"}
    entries = {
        cub.library_path(compiler, headers, defines, arch)
        for headers in (toolkit, newer)
        for defines in (keys, keys | {"ELEMENT": "float"})
        for arch in ("sm_90", "sm_100")
    }
    assert len(entries) == 8


def test_architecture_of_the_device():
    assert cub.architecture(frozenset({"sm_75", "sm_90", "sm_90a", "clusters"})) == "sm_90"
    with pytest.raises(NoDeviceError):
        cub.architecture(frozenset())


class ScriptedMeter:
    """Samples of `ms`, in turn."""

    def __init__(self, times):
        self.times = {name: list(ms) for name, ms in times.items()}
        self.asked = []

    def sample(self, candidate, cache, number):
        self.asked.append((candidate, cache, number))
        return measured.Sample(number, self.times[candidate].pop(0))


def test_the_faster_width_is_taken():
    slow, fast = [9, 4, 4, 4, 4, 50, 4, 4], [90, 2, 2, 2, 2, 2, 2, 60]
    meter = ScriptedMeter({"narrow": slow, "wide": fast})
    assert cub.faster(("narrow", "wide"), meter) == ("wide", 2)
    assert meter.asked[:4] == [
        ("narrow", measured.COLD, -1),
        ("wide", measured.COLD, -1),
        ("narrow", measured.COLD, 0),
        ("wide", measured.COLD, 0),
    ]
    assert not any(meter.times.values())


class Placed:
    """A buffer as far as its address matters."""

    def __init__(self, address, shape, itemsize=4):
        self.address, self.shape = address, shape
        self.nbytes = int(np.prod(shape)) * itemsize


def test_addresses():
    keys, pairs = Placed(1000, (10,)), Placed(1000, (2, 10))
    assert cub.addresses([keys], Placed(5000, (10,))) == (1000, 1000, 5000, 5000)
    assert cub.addresses([pairs], Placed(5000, (2, 10))) == (1000, 1040, 5000, 5040)
    two = [Placed(1000, (10,)), Placed(2000, (10,))]
    assert cub.addresses(two, Placed(5000, (1,))) == (1000, 2000, 5000, 0)


@pytest.fixture(scope="module")
def host():
    """The CPU device, whatever the tests run on."""
    with open_device("cpu") as opened:
        yield opened


class FakeLibrary:
    """CUB's sort on the host's memory."""

    def __init__(self):
        self.widths = []

    def temp_bytes(self, pointers, bins, n, *, wide):
        del pointers, bins, n
        return 100 + wide

    def run(self, temp, size, pointers, bins, n, *, wide):
        del bins
        assert temp
        assert size == 101
        source, _, target, _ = pointers
        memory_at(target, n, np.uint32)[:] = np.sort(memory_at(source, n, np.uint32))
        self.widths.append(wide)


def memory_at(address, n, dtype):
    memory = (ctypes.c_uint8 * (n * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)


def test_a_candidate_of_cub(host, tmp_path, monkeypatch):
    """All but the library itself."""
    lab = labs.get("radixsort")
    case = lab.complete({})
    library = FakeLibrary()
    headers = cub.Headers((3, 0, 1))
    monkeypatch.setattr(nvcc, "find_nvcc", lambda _: "nvcc")
    monkeypatch.setattr(cub, "installed", lambda _: [headers])
    monkeypatch.setattr(cub, "load", lambda *_: library)
    monkeypatch.setattr(cub, "architecture", lambda _: "sm_90")
    made = data(lab, case, host, tmp_path)
    (candidate,) = cub.candidates(lab, sampler_of(host), made.inputs, case, made.buffers)
    assert (candidate.name, candidate.kind, candidate.device) == ("cub", "baseline", "cpu")
    assert re.fullmatch(
        r"CUB 3\.0\.1, n of (32|64) bits: \d+\.\d\d x as fast as with (32|64)", candidate.notes[0]
    )
    assert library.widths == [False, True] * (1 + cub.TRIALS)
    check(lab, case, host, made, candidate)


# CuPy --------------------------------------------------------------------------------------------


class FakeCupy(types.ModuleType):
    """NumPy, with what CuPy has besides, on the CPU device's memory."""

    __version__ = "0"

    def __init__(self, monkeypatch):
        super().__init__("cupy")
        self.freed = 0
        self.compute_types = {}
        nothing = types.SimpleNamespace(use=lambda: None)
        self.cuda = types.SimpleNamespace(
            Stream=types.SimpleNamespace(null=nothing),
            UnownedMemory=lambda address, nbytes, owner, _: (address, nbytes, owner),
            MemoryPointer=lambda memory, offset: (*memory, offset),
            cub=types.SimpleNamespace(device_histogram=self._histogram),
        )
        routines = types.ModuleType("_routines_linalg")
        routines.COMPUTE_TYPE_FP32 = "full"
        routines.COMPUTE_TYPE_TF32, routines.COMPUTE_TYPE_FP16 = "short", "half"
        routines.get_compute_type = self.compute_types.get
        routines.set_compute_type = self.compute_types.__setitem__
        core = types.ModuleType("cupy._core")
        core._routines_linalg = routines
        self.cublas = types.ModuleType("cupy.cublas")
        self.cublas.geam = self._geam
        extra = types.ModuleType("cupyx")
        extra.errstate = lambda **_: contextlib.nullcontext()
        extra.lapack = types.SimpleNamespace(gesv=self._gesv, posv=self._posv)
        extra.cusolver = types.SimpleNamespace(gesv=self._refined)
        modules = {"cupy": self, "cupy._core": core, "cupy.cublas": self.cublas, "cupyx": extra}
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    def __getattr__(self, name):
        return getattr(np, name)

    def get_default_memory_pool(self):
        self.freed += 1
        return types.SimpleNamespace(free_all_blocks=lambda: None)

    @staticmethod
    def ndarray(shape, dtype, pointer):
        address, nbytes, _, offset = pointer
        assert offset == 0
        array = memory_at(address, nbytes // np.dtype(dtype).itemsize, dtype)
        return array.reshape(shape)

    def _refined(self, a, b):
        assert self.compute_types[np.float32] in {"full", "short", "half"}
        return np.linalg.solve(a, b)

    @staticmethod
    def _histogram(x, y, levels):
        y[...] = np.bincount(x, minlength=levels - 1)
        return y

    @staticmethod
    def _geam(transa, transb, alpha, a, beta, b, out):
        assert (transa, transb, alpha, beta) == ("N", "N", 1.0, 0.0)
        assert a is b
        assert a.shape == out.shape
        assert out.flags.f_contiguous
        out[...] = a

    @staticmethod
    def _gesv(a, b):
        b[...] = np.linalg.solve(a, b)
        a[...] = 0  # it is overwritten

    @staticmethod
    def _posv(a, b):
        np.linalg.cholesky(a)
        return np.linalg.solve(a, b)


@pytest.mark.parametrize(("name", "case"), list(every_case()))
def test_what_is_asked_of_cupy(host, tmp_path, monkeypatch, name, case):
    """Not the libraries, but how they are called: with NumPy in their place."""
    lab = labs.get(name)
    if why_not("cupy", lab, case, "cuda"):
        pytest.skip("cupy has nothing for this case")
    fake = FakeCupy(monkeypatch)
    made = data(lab, case, host, tmp_path)
    candidates = through_cupy.candidates(lab, sampler_of(host), made.inputs, case, made.buffers)
    assert fake.freed == 1
    assert candidates[0].name == "cupy"
    assert (fake.compute_types.get(np.float32) == "full") == (name == "matmul")
    for candidate in candidates:
        assert (candidate.kind, candidate.device) == ("baseline", "cpu")
        assert candidate.notes[0].startswith("CuPy 0")
        with np.errstate(all="ignore"):
            check(lab, case, host, made, candidate)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(RuntimeError("CUBLAS_STATUS_INTERNAL"), CudalabError), (MemoryError("x"), DeviceMemoryError)],
)
def test_what_cupy_cannot_do_is_said(host, tmp_path, monkeypatch, raised, expected):
    FakeCupy(monkeypatch)
    lab = labs.get("reduce")
    case = lab.complete({})
    made = data(lab, case, host, tmp_path)
    (candidate,) = through_cupy.candidates(lab, sampler_of(host), made.inputs, case, made.buffers)

    def fail(*_args, **_options):
        raise raised

    monkeypatch.setitem(sys.modules["cupy"].__dict__, "sum", fail)
    with pytest.raises(expected, match=f"cupy: {raised}"):
        through_cupy.candidates(lab, sampler_of(host), made.inputs, case, made.buffers)
    candidate.run()  # planned before


@pytest.mark.parametrize("bins", [1, 7, 64, 255, 256])
def test_classes_through_cupy(host, tmp_path, monkeypatch, bins):
    FakeCupy(monkeypatch)
    lab = labs.get("histogram")
    case = lab.complete({"bins": bins})
    made = data(lab, case, host, tmp_path)
    (candidate,) = through_cupy.candidates(lab, sampler_of(host), made.inputs, case, made.buffers)
    check(lab, case, host, made, candidate)


def test_cholesky_is_offered_where_it_works(host, tmp_path, monkeypatch):
    FakeCupy(monkeypatch)
    lab = labs.get("solve")
    case = lab.complete({})
    offered = {}
    for dist in set(lab.distributions) - {"singular"}:
        made = data(lab, case, host, tmp_path, dist=dist, n=8)
        found = through_cupy.candidates(lab, sampler_of(host), made.inputs, case, made.buffers)
        offered[dist] = "cupy (Cholesky)" in [candidate.name for candidate in found]
        a = made.inputs.arrays["a"].astype(np.float64)
        definite = bool((a == a.T).all()) and np.linalg.eigvalsh(a).min() > 1e-6
        assert offered[dist] >= definite
    assert set(offered.values()) == {True, False}


# On a GPU ----------------------------------------------------------------------------------------


@CUDA
@pytest.mark.parametrize("defines", list(cub_operations()))
def test_every_operation_of_cub_compiles(compiler, tmp_path, defines):
    for number, headers in enumerate(cub.installed(compiler)):
        cub.build(compiler, headers, defines, "sm_90", tmp_path / f"{number}.so")


def installed_or_skip(name, device):
    try:
        if name == "cupy":
            pytest.importorskip("cupy")
        else:
            cub.installed(nvcc.find_nvcc())
    except NoDeviceError as error:
        pytest.skip(error.message)
    if device.name != "cuda":
        pytest.skip("runs on the CUDA device")


@CUDA
@pytest.mark.parametrize("library", ["cupy", "cub"])
@pytest.mark.parametrize(("name", "case"), list(every_case()))
def test_the_vendor_s_libraries_are_right(device, tmp_path, name, case, library):
    installed_or_skip(library, device)
    lab = labs.get(name)
    reason = why_not(library, lab, case, "cuda")
    if reason:
        pytest.skip(reason)
    made = data(lab, case, device, tmp_path, n=size_of(lab, case))
    candidates = found(lab, case, device, made, library)
    assert candidates
    for candidate in candidates:
        assert candidate.name.startswith(library)
        assert (candidate.kind, candidate.device) == ("baseline", "cuda")
        assert candidate.notes
        check(lab, case, device, made, candidate)


@CUDA
def test_cholesky_where_the_matrix_is_positive_definite(device, tmp_path):
    installed_or_skip("cupy", device)
    lab = labs.get("solve")
    case = lab.complete({})
    names = {}
    for dist in lab.distributions:
        made = data(lab, case, device, tmp_path, dist=dist, n=64)
        names[dist] = [c.name for c in found(lab, case, device, made, "cupy")]
        a = made.inputs.arrays["a"].astype(np.float64)
        definite = (a == a.T).all() and np.linalg.eigvalsh(a).min() > 1e-3
        assert ("cupy (Cholesky)" in names[dist]) >= definite
    assert any(len(of_dist) == 1 for of_dist in names.values())


@CUDA
def test_libraries_use_the_device_s_memory_and_stream(device, tmp_path):
    """They compute what was enqueued behind a held stream, and never wait for it."""
    installed_or_skip("cupy", device)
    lab = labs.get("reduce")
    case = lab.complete({})
    made = data(lab, case, device, tmp_path)
    sampler = sampler_of(device)
    judge = measure.Judge(lab, made.inputs, case, device, made.buffers)
    for candidate in found(lab, case, device, made, "cupy", "cub"):
        candidate.poison()
        assert sampler.sample(candidate, measured.COLD, 0).ms > 0
        assert not candidate.reads_back
        assert judge.mistake(candidate) is None


def test_names():
    assert NAMES == ("numpy", "cupy", "cub")
