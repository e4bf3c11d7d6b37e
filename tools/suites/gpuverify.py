"""GPUVerify: kernels without a host, each of which is given one."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from tools.suites.program import RIGHT, Program, Suite

ABOUT = (
    "the kernels of `testsuite/CUDA` but for those about annotations, each with a host program "
    "that is made for it: at most 4 blocks of 1,024 threads, and three inputs (zeros, ones, some "
    "small numbers). A precondition that an input does not meet ends the kernel; a function that "
    "is only declared does nothing, and returns 0. Assertions in CUDA's own words hold or end the "
    "kernel. Four are given the arguments, or what the host does, that their comments ask for"
)
# What its kernels say to the verifier alone means nothing to a compiler.
ANNOTATIONS = """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <type_traits>
#define __requires(condition) \\
    if (!(condition)) return
#define __invariant(...) (void)0
#define __global_invariant(...) (void)0
#define __ensures(...)
#define __assume(condition) \\
    if (!(condition)) return
#define __requires_fresh_array(...)
#define __read_implies(...) true
#define __write_implies(...) true
#define __ptr_offset_bytes(...) 0
"""
ASSERTIONS = {
    True: "#define __assert(condition) if (!(condition)) __trap()\n",
    False: "#define __assert(...)\n",
}
# What cuda.h of the verifier has, too.
HEADERS = {
    "curand": "#include <curand_kernel.h>\n",
    "cooperative_groups": "#include <cooperative_groups.h>\n"
    "#define synchronize(group) (group).sync()\n",
}
HOST = """
template <class T> struct Parameters;
template <class R, class First, class... More> struct Parameters<R (*)(First, More...)> {
    using first = First;
    using rest = R (*)(More...);
};
template <int i, class Kernel>
struct Argument : Argument<i - 1, typename Parameters<Kernel>::rest> {};
template <class Kernel> struct Argument<0, Kernel> {
    using type = typename Parameters<Kernel>::first;
};
static int input;
static int number(int i) { return input == 0 ? 0 : input == 1 ? 1 : (i * 7 + 3) % 64; }
static void* memory() {
    static int values[1 << 18];
    for (int i = 0; i < 1 << 18; i++) values[i] = number(i);
    void* made;
    cudaMalloc(&made, sizeof values);
    cudaMemcpy(made, values, sizeof values, cudaMemcpyHostToDevice);
    return made;
}
template <class T> T argument() {
    if constexpr (std::is_pointer_v<T>) {
        return (T)memory();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
        return (T)number(4);
    } else {
        T made;
        for (size_t i = 0; i + 8 <= sizeof made && alignof(T) == 8; i += 8)
            *(void**)((char*)&made + i) = memory();
        for (size_t i = 0; i + 4 <= sizeof made && alignof(T) < 8; i += 4)
            *(int*)((char*)&made + i) = number(4);
        return made;
    }
}
template <class Kernel, class... Given>
void together(Kernel kernel, dim3 grid, dim3 block, Given... given) {
    void* all[] = {&given..., nullptr};
    cudaLaunchCooperativeKernel(kernel, grid, block, all, 0, 0);
}
int main(int, char** arguments) {
    input = atoi(arguments[1]);
"""
STATED = {
    "null pointer": r"null",
    "write to constant memory": r"constant memory",
    "barrier": r"divergence",
    "out of bounds": r"0-sized",
}
# Kernels that are wrong to the verifier alone, or with other arguments; and those that, as
# something else than they state, are wrong here.
ASSERTION, OTHER_INPUT = "an assertion fails", "wrong with other arguments"
UNREACHED = {
    "atomics/test_abstraction_enforced": ASSERTION,  # a counter is 0 after atomicAdd(c, 1)
    "function_pointers/soundness_issue": ASSERTION,  # __assert(false)
    "misc/fail/miscfail2": "an invariant that is not inductive",  # "the missing invariant"
    "misc/fail/miscfail8": ASSERTION,  # __assert(false)
    "function_pointers/pass_struct/call": "null pointer",  # the function may be any pointer
    "param_values/value_in_assert": ASSERTION,
    "function_pointers/funcptr_to_ptr_add": OTHER_INPUT,  # a certain function
}
# What a host does for the mistake to happen, as the kernel's comment says: the arguments, and what
# comes before the launch.
HOSTS: dict[str, tuple[tuple[str, ...], str]] = {
    "misc/fail/miscfail7": (("nullptr",), ""),
    "param_values/value_causing_race": (("(float*)memory()", "185"), ""),
    "param_values/value_in_assert": (("12", "36", "48"), ""),
    # "The host is free to change the contents of A."
    "globalarray/fail": (
        ("(float*)memory()",),
        "    const int zeros[8] = {};\n    cudaMemcpyToSymbol(A, zeros, sizeof zeros);\n",
    ),
}
# Kernels that the verifier passes, and that have a mistake in CUDA: nvcc refuses a variable of the
# host in device code, and compiles more than 48 KB of static shared memory only where it can drop
# them; the others read an element of a shared array that no thread writes, and mostly drop it.
MISTAKEN = {
    "atomics/pointer_add": "a variable of the host",
    "memcpy_simplification/i8_element_global_passed_to_call1": "a variable of the host",
    "memcpy_simplification/i8_element_global_passed_to_call2": "a variable of the host",
    "ctimeslid": "right, if an array is dropped that nobody reads",
    "localarrayaccess": "uninitialised memory",  # A[10], where 10 threads write A[0] to A[9]
    "memcpy/arrayofstruct": "uninitialised memory",  # pairs[i] = fresh, which nobody has set
    "memcpy_simplification/shared_element_passed_to_call": "uninitialised memory",  # bar(x[0])
    "scope": "uninitialised memory",  # 1,024 of 4,096 numbers are set, and all are added
    "pointertests/test_copy_between_memory_spaces": "uninitialised memory",  # p[0] = A[0]
    # All threads write one shared pointer, the same, and read it: no barrier between two warps.
    "pointertests/test12": "right, if equal values do not race",
}
_KERNEL = re.compile(
    r"__global__\s+(?:static\s+|inline\s+)*void\s+(?:__\w+(?:\(.*?\))?\s+)*(\w+)\s*\("
)
_ASSERTION = re.compile(r"\b__assert\((.*)\)")
_DECLARED = re.compile(
    r"^(?:inline\s+)?__device__\s+(?P<type>\w+)\s+(?P<name>\w+)\([^;{}()]*\);", re.MULTILINE
)
_SIZE = {name: re.compile(rf"--{name}=\[?([\d,]+)") for name in ("blockDim", "gridDim")}


def gpuverify(folder: Path) -> Iterator[Program]:
    """The kernels of the suite, each behind a header and before a main function of its own."""
    for path in sorted(folder.rglob("kernel.cu")):
        name = path.parent.relative_to(folder / "testsuite/CUDA").as_posix()
        text = path.read_text("utf-8")
        first, options = [*text.splitlines(), "", ""][:2]
        if name.startswith("annotation_tests") or "_ERROR" in first.upper():
            continue
        right = first.lower().startswith("//pass")
        in_step = right and "warp-sync" in options
        host = path.with_name("program.cu")
        host.write_text(with_host(text, options, *HOSTS.get(name, ((), ""))), "utf-8")
        defines = (*re.findall(r"-D\S+", options), "-Xcompiler", "-fpermissive")
        fails = UNREACHED.get(name) or stated(name, text)
        passes = MISTAKEN.get(name, "right, if warps move in step" if in_step else RIGHT)
        truth = passes if right else fails
        yield Program(
            name,
            truth,
            (host.name,),
            folder=path.parent,
            options=defines,
            runs=(("0",), ("1",), ("2",)),
        )


def stated(name: str, text: str) -> str:
    """The mistake that the name of a kernel, or the comment in front of it, states."""
    comments = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines())
    words = " ".join([name, *comments])
    return next((truth for truth, said in STATED.items() if re.search(said, words)), "race")


def with_host(text: str, options: str, arguments: tuple[str, ...] = (), before: str = "") -> str:
    """A main function that launches the kernels of a file, in the sizes of its options, with these
    arguments, or with some of their types.
    """
    headers = "".join(header for word, header in HEADERS.items() if word in text)
    sizes = f"{shape(options, 'gridDim', 4)}, {shape(options, 'blockDim', 1024)}"
    launches = before
    for name, count in kernels(text):
        any_of = [f"argument<Argument<{i}, decltype(&{name})>::type>()" for i in range(count)]
        made = arguments or any_of
        if "this_grid" in text:
            launches += f"    together({', '.join([f'&{name}', sizes, *made])});\n"
        else:
            launches += f"    {name}<<<{sizes}>>>({', '.join(made)});\n"
    main = f"{HOST}{launches}    cudaDeviceSynchronize();\n}}\n"
    plain = all("__" not in said for said in _ASSERTION.findall(text))
    return f'{ANNOTATIONS}{ASSERTIONS[plain]}{headers}#include "kernel.cu"\n{missing(text)}{main}'


def missing(text: str) -> str:
    """Definitions of the functions that a file declares and does not define."""
    return "".join(
        f"{match[0][:-1]} {{{'' if match['type'] == 'void' else ' return {}; '}}}\n"
        for match in _DECLARED.finditer(text)
        if not re.search(rf"__device__[^;{{}}]*\b{match['name']}\s*\([^;{{}}()]*\)\s*{{", text)
    )


def kernels(text: str) -> Iterator[tuple[str, int]]:
    """The name of each kernel, and the number of its parameters."""
    for match in _KERNEL.finditer(text):
        end, depth, commas = match.end(), 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            commas += text[end] == "," and depth == 1
            end += 1
        is_empty = text[match.end() : end - 1].strip() in ("", "void")
        yield match[1], 0 if is_empty else commas + 1


def shape(options: str, name: str, most: int) -> str:
    """A grid or block of at most `most` items, as a dim3."""
    match = _SIZE[name].search(options)
    sizes = [int(each) for each in match[1].split(",") if each] if match else [1]
    for i, size in enumerate(sizes):
        sizes[i] = min(size, most)
        most //= sizes[i]
    return f"dim3({', '.join(map(str, sizes))})"


SUITES = {
    "gpuverify": Suite(
        "GPUVerify", {"mc-imperial/gpuverify": "testsuite/CUDA"}, ABOUT, programs=gpuverify
    )
}
