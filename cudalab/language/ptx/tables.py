"""What instructions of PTX are in C++, where a table can say it."""

# The C++ types of registers by the letter of a constraint, and by PTX's own names.
CONSTRAINTS = {
    "h": "unsigned short",
    "r": "unsigned",
    "l": "unsigned long long",
    "n": "long long",
    "f": "float",
    "d": "double",
}
TYPES = {
    "pred": "bool",
    "u8": "unsigned char",
    "s8": "signed char",
    "b8": "unsigned char",
    "u16": "unsigned short",
    "s16": "short",
    "b16": "unsigned short",
    "u32": "unsigned",
    "s32": "int",
    "b32": "unsigned",
    "u64": "unsigned long long",
    "s64": "long long",
    "b64": "unsigned long long",
    "f32": "float",
    "f64": "double",
}
SPECIAL = {
    **{
        f"%{ptx}.{axis}": f"::{name}.{axis}"
        for ptx, name in (
            ("tid", "threadIdx"),
            ("ntid", "blockDim"),
            ("ctaid", "blockIdx"),
            ("nctaid", "gridDim"),
        )
        for axis in "xyz"
    },
    "%laneid": "::cudalab::lane()",
    "%warpid": "(::cudalab::current.thread / 32)",
    "%nwarpid": "((::blockDim.x * ::blockDim.y * ::blockDim.z + 31) / 32)",
    "%smid": "::cudalab::ptx::multiprocessor()",
    "%nsmid": "::cudalab::ptx::MULTIPROCESSORS",
    "%gridid": "0",
    "%lanemask_eq": "(1u << ::cudalab::lane())",
    "%lanemask_lt": "((1u << ::cudalab::lane()) - 1)",
    "%lanemask_le": "((2u << ::cudalab::lane()) - 1)",
    "%lanemask_gt": "(~0u - ((2u << ::cudalab::lane()) - 1))",
    "%lanemask_ge": "(~0u << ::cudalab::lane())",
    "%dynamic_smem_size": "::cudalab::dynamic_shared_bytes()",
    "%total_smem_size": "::cudalab::total_shared_bytes()",
    "%aggr_smem_size": "::cudalab::total_shared_bytes()",
    "%clock": "((unsigned)::clock64())",
    "%clock_hi": "((unsigned)(::clock64() >> 32))",
    "%clock64": "::clock64()",
    "%globaltimer": "::cudalab::ptx::global_timer()",
    "%globaltimer_lo": "((unsigned)::cudalab::ptx::global_timer())",
    "%globaltimer_hi": "((unsigned)(::cudalab::ptx::global_timer() >> 32))",
    "WARP_SZ": "32",
}
# Instructions whose result is an expression of their sources, all of the instruction's type.
EXPRESSIONS = {
    "mov": "{a}",
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "neg": "-{a}",
    "abs": "::cudalab::ptx::magnitude({a})",
    "min": "::cudalab::ptx::least({a}, {b})",
    "max": "::cudalab::ptx::greatest({a}, {b})",
    "and": "{a} & {b}",
    "or": "{a} | {b}",
    "xor": "{a} ^ {b}",
    "not": "~{a}",
    "cnot": "{a} == 0",
    "div": "{a} / {b}",
    "rem": "{a} % {b}",
    "selp": "{c} ? {a} : {b}",
    "popc": "__builtin_popcountll((::cudalab::ptx::Bits<{t}>){a})",
    "clz": "::cudalab::ptx::leading_zeros({a})",
    "brev": "::cudalab::ptx::reversed({a})",
    "bfind": "::cudalab::ptx::find_leading({a})",
    "bfind.shiftamt": "::cudalab::ptx::leading_shift({a})",
    "bfe": "::cudalab::ptx::extract<{t}>({a}, {b}, {c})",
    "bfi": "::cudalab::ptx::insert<{t}>({a}, {b}, {c}, {d})",
    "shl": "::cudalab::ptx::shift_left({a}, {b})",
    "shr": "::cudalab::ptx::shift_right({a}, {b})",
    "shf.l.wrap": "::__funnelshift_l({a}, {b}, {c})",
    "shf.l.clamp": "::__funnelshift_lc({a}, {b}, {c})",
    "shf.r.wrap": "::__funnelshift_r({a}, {b}, {c})",
    "shf.r.clamp": "::__funnelshift_rc({a}, {b}, {c})",
    "prmt": "::cudalab::ptx::permute({a}, {b}, {c})",
    "lop3": "::cudalab::ptx::lookup({a}, {b}, {c}, {d})",
    "sad": "{c} + ({a} > {b} ? {a} - {b} : {b} - {a})",
    "dp4a": "::__dp4a({a}, {b}, {c})",
    "mul.lo": "{a} * {b}",
    "mul.hi": "::cudalab::ptx::high_product({a}, {b})",
    "mad.lo": "{a} * {b} + {c}",
    "mad.hi": "::cudalab::ptx::high_product({a}, {b}) + {c}",
    "mul24.lo": "::__mul24((int){a}, (int){b})",
    "ex2": "exp2{f}({a})",
    "lg2": "log2{f}({a})",
    "sin": "sin{f}({a})",
    "cos": "cos{f}({a})",
    "tanh": "tanh{f}({a})",
    "rsqrt": "1 / sqrt{f}({a})",
    "sqrt": "sqrt{f}({a})",
    "rcp": "1 / {a}",
    "copysign": "copysign{f}({b}, {a})",
    "fma": "fma{f}({a}, {b}, {c})",
    "mul": "{a} * {b}",
    "mad": "fma{f}({a}, {b}, {c})",
    "match.any": "::__match_any_sync({b}, {a})",
    "redux.sync.add": "::__reduce_add_sync({b}, {a})",
    "redux.sync.min": "::__reduce_min_sync({b}, {a})",
    "redux.sync.max": "::__reduce_max_sync({b}, {a})",
    "redux.sync.and": "::__reduce_and_sync({b}, {a})",
    "redux.sync.or": "::__reduce_or_sync({b}, {a})",
    "redux.sync.xor": "::__reduce_xor_sync({b}, {a})",
}
INTEGERS_ONLY = frozenset({"and", "or", "xor", "not", "cnot", "rem", "shl", "shr", "popc", "clz"})
COUNTS = frozenset({"popc", "clz", "bfind", "bfind.shiftamt"})  # the result is a word
# The sources that are words whatever the type of the instruction.
WORDS = {
    "bfe": "bc",
    "bfi": "cd",
    "shl": "b",
    "shr": "b",
    "lop3": "d",
    "match": "b",
    "redux": "b",
}
# The wide products: sources of 16 or 32 bits, a result of twice as many.
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
# Arithmetic of floats that is rounded as its name says: `add.rz.f32` is __fadd_rz.
ROUNDED = {
    "f32": {
        "add": "__fadd",
        "sub": "__fsub",
        "mul": "__fmul",
        "div": "__fdiv",
        "rcp": "__frcp",
        "sqrt": "__fsqrt",
        "fma": "__fmaf",
        "mad": "__fmaf",
    },
    "f64": {
        "add": "__dadd",
        "sub": "__dsub",
        "mul": "__dmul",
        "div": "__ddiv",
        "rcp": "__drcp",
        "sqrt": "__dsqrt",
        "fma": "__fma",
        "mad": "__fma",
    },
}
DIRECTIONS = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
TO_WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
COMPARISONS = {
    "eq": "{a} == {b}",
    "ne": "{a} < {b} || {a} > {b}",
    "lt": "{a} < {b}",
    "le": "{a} <= {b}",
    "gt": "{a} > {b}",
    "ge": "{a} >= {b}",
    "lo": "{a} < {b}",
    "ls": "{a} <= {b}",
    "hi": "{a} > {b}",
    "hs": "{a} >= {b}",
    "equ": "!({a} < {b} || {a} > {b})",
    "neu": "{a} != {b}",
    "ltu": "!({a} >= {b})",
    "leu": "!({a} > {b})",
    "gtu": "!({a} <= {b})",
    "geu": "!({a} < {b})",
    "num": "{a} == {a} && {b} == {b}",
    "nan": "{a} != {a} || {b} != {b}",
}
ATOMICS = {
    "add": "Add",
    "min": "Min",
    "max": "Max",
    "and": "And",
    "or": "Or",
    "xor": "Xor",
    "exch": "Exch",
    "inc": "Inc",
    "dec": "Dec",
    "cas": "CAS",
}
# Instructions without a result, by their first words.
PROCEDURES = {
    "bar.sync 0": "::__syncthreads()",
    "barrier.sync 0": "::__syncthreads()",
    "barrier.sync.aligned 0": "::__syncthreads()",
    "barrier.cta.sync 0": "::__syncthreads()",
    "cp.async.commit_group": "::__pipeline_commit()",
    "cp.async.wait_all": "::__pipeline_wait_prior(0)",
    "trap": "::__trap()",
    "brkpt": "::__brkpt()",
}
OF_NO_EFFECT = ("prefetch", "prefetchu", "pmevent", "applypriority", "discard")
SHUFFLES = {"idx": 0, "up": 1, "down": 2, "bfly": 3}
