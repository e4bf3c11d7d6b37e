"""nvcc's options on the command line of `cudalab run`, and what they mean to the host's compiler.

A line for nvcc is a line for `cudalab run`: the GPU's program is compiled with all of them. On the
CPU device those that speak of a GPU, of optimisation or of warnings mean nothing.
"""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from cudalab.errors import UsageError

# nvcc's long names for options that have a short one.
_SHORT = {
    "library": "l",
    "library-path": "L",
    "include-path": "I",
    "system-include": "isystem",
    "define-macro": "D",
    "output-file": "o",
    "optimize": "O",
    "compiler-options": "Xcompiler",
    "linker-options": "Xlinker",
    "ptxas-options": "Xptxas",
    "nvlink-options": "Xnvlink",
    "gpu-architecture": "arch",
    "gpu-code": "code",
    "generate-code": "gencode",
    "relocatable-device-code": "rdc",
    "compiler-bindir": "ccbin",
    "machine": "m",
}
_ATTACHED = ("l", "L", "O", "m", "isystem")  # the value may follow at once, as in -lm
_VALUES = frozenset(
    {*_ATTACHED, "Xcompiler", "Xlinker", "Xptxas", "Xnvlink", "Xcudafe", "Xarchive", "ccbin"}
    | {"arch", "code", "gencode", "rdc", "std", "maxrregcount", "x", "t", "threads", "cudart"}
    | {"cudadevrt", "fmad", "ftz", "prec-div", "prec-sqrt", "default-stream", "Werror"}
    | {"diag-error", "diag-suppress", "diag-warn", "lto", "split-compile", "MF", "MT"}
    | {"keep-dir", "dependency-output", "dependency-target-name", "optf", "options-file", "odir"}
    | {"output-directory", "Xfatbin", "nvlink-options", "device-stack-protector", "target-dir"}
    | {"relocatable-ptx", "static-global-template-stub", "device-entity-has-hidden-visibility"}
)
_FLAGS = frozenset(
    {"g", "G", "w", "v", "pg", "debug", "device-debug", "verbose", "keep", "restrict", "dlto"}
    | {"lineinfo", "generate-line-info", "use_fast_math", "extra-device-vectorization"}
    | {"extended-lambda", "expt-extended-lambda", "expt-relaxed-constexpr", "res-usage"}
    | {"resource-usage", "source-in-ptx", "allow-unsupported-compiler", "disable-warnings"}
    | {"Wno-deprecated-gpu-targets", "Wno-deprecated-declarations", "Wreorder", "Wall", "Wextra"}
    | {"Wdefault-stream-launch", "Wmissing-launch-bounds", "MD", "MMD", "MP", "m64"}
    | {"disable-optimizer-constants", "forward-unknown-to-host-compiler", "forward-unknown-opts"}
    | {"std-c", "clean-targets", "no-align-double", "k", "save-temps", "cudart-shared"}
    | {"no-compress", "extra-warnings", "Wext-lambda-captures-this"}
    | {"generate-dependencies-with-compile", "generate-nonsystem-dependencies-with-compile"}
)
_NO_PROGRAM = frozenset(
    {"c", "dc", "dw", "E", "M", "MM", "ptx", "cubin", "fatbin", "cuda", "lib", "shared", "dlink"}
    | {"compile", "device-c", "device-link", "preprocess", "dryrun", "run"}
)
# The toolkit's libraries are part of the CPU device, or missing: then their headers are refused.
_TOOLKIT = (
    *("cuda", "cublas", "cufft", "curand", "cusolver", "cusparse", "nvToolsExt", "nvtx"),
    *("npp", "nvrtc", "nvJitLink", "nvidia-ml", "culibos", "nvjpeg", "cudnn"),
)
# Options of the host's compiler that cudalab chooses itself; the last are of Microsoft's.
_OURS = ("-O", "-W", "-w", "-g", "-march", "-mtune", "-mcpu", "-std", "-ffast-math", "/")


@dataclass
class HostOptions:
    """What options mean to the host's compiler."""

    folders: list[str] = field(default_factory=list)  # -I
    macros: str = ""  # text that defines them, to follow our own headers: N would change those
    compile: list[str] = field(default_factory=list)
    link: list[str] = field(default_factory=list)


def split(words: Sequence[str], ways: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """The words that `cudalab run` itself understands, and nvcc's options, each as one word.

    UsageError for an option that asks nvcc for something other than a program, except those called
    `ways`, which stay with the words.
    """
    ours: list[str] = []
    options: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        name = _SHORT.get(name, name)
        attached = next((each for each in _ATTACHED if name.startswith(each)), "")
        if not word.startswith("-"):
            ours.append(word)
        elif name in ways:
            ours.append(f"-{name}")
        elif name in ("I", "D", "o"):
            ours += [f"-{name}", *([value] if equals else rest[:1])]
            rest = rest if equals else rest[1:]
        elif name in _NO_PROGRAM:
            raise UsageError(
                f"{word}: `cudalab run` compiles a program and runs it",
                hint="name all files of the program at once, without this option",
            )
        elif name in _FLAGS:
            options.append(f"-{name}")
        elif name in _VALUES:
            value = value if equals else (rest.pop(0) if rest else "")
            options.append(f"-{name}{value}" if name in _ATTACHED else f"-{name}={value}")
        elif attached and not word.startswith("--"):
            options.append(word)
        else:
            ours.append(word)
    return ours, options


def for_host(options: Sequence[str]) -> HostOptions:
    """What nvcc's options mean to the host's compiler."""
    host = HostOptions()
    for option in options:
        name, _, value = option[1:].partition("=")
        if option.startswith("-D"):
            macro, equals, text = option[2:].partition("=")
            host.macros += f"#define {macro} {text if equals else 1}\n"
        elif option.startswith(("-I", "-isystem")):
            folder = option.replace("-isystem", "-I")
            # What the CPU device has of a toolkit's headers is its own.
            headers = os.path.join(folder[2:], "cuda_runtime.h")  # noqa: PTH118 - pathlib is slow to start with
            host.folders += [] if os.path.isfile(headers) else [folder]  # noqa: PTH113 - as above
        elif option.startswith("-L"):
            host.link.append(option)
        elif option.startswith("-l") and name not in _FLAGS and "=" not in option:
            host.link += [] if name[1:].startswith(_TOOLKIT) else [option]
        elif name == "Xlinker":
            host.link.append(f"-Wl,{value}")
        elif name == "Xcompiler":
            words = _for_compiler(option, value)
            passed = [word for word in words if not word.startswith(_OURS)]
            host.compile += passed
            host.link += [*passed, *(word for word in words if word.startswith("-Wl,"))]
        elif option == "-fmad=false":
            host.compile.append("-ffp-contract=off")
        elif name == "std" and value.endswith(("20", "2a", "23", "2b")):
            host.compile.append(option)
    return host


def _for_compiler(option: str, value: str) -> list[str]:
    """The words of -Xcompiler: nvcc splits them at commas, and a shell reads what is left."""
    parts = re.findall(r"""(?:\\.|"[^"]*"|'[^']*'|[^,"'\\]|["'])+""", value)
    try:
        return [word for part in parts for word in shlex.split(re.sub(r"\\(.)", r"\1", part))]
    except ValueError as error:
        raise UsageError(f"{option}: {str(error).lower()}") from None


def folders_of(options: Sequence[str]) -> list[str]:
    """The folders of headers."""
    return [folder.removeprefix("-I") for folder in for_host(options).folders]


def libraries_of(options: Sequence[str]) -> list[str]:
    """The files of the libraries that lie in the folders of -L."""
    names = [option[2:] for option in for_host(options).link if option.startswith("-l")]
    folders = [option[2:] for option in options if option.startswith("-L")]
    paths = [
        os.path.join(folder, f"lib{name}.{kind}")  # noqa: PTH118 - pathlib is slow to start with
        for folder in folders
        for name in names
        for kind in ("so", "a")
    ]
    return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - as above
