"""Why nothing is reported of some wrong programs of others."""

ALIKE = "all threads write the same value, whatever the input"
NO_RULE = "breaks no rule of CUDA; its own test sees it"

NOT_REPORTED = {
    "single mistakes": {
        "b23_intra_struct": "an array inside a structure is overrun into its next member",
    },
    "CUDABeaver": {
        "59__logic_error__501f0dd2/broken_start": f"`x > 0` for `x < 0`: {NO_RULE}",
        "110__logic_error__957be815/broken_start": "the network sorts powers of two only, and is "
        f"given 5 to 7 numbers: {NO_RULE}",
        "123__logic_error__12ba71c9/broken_start": "the answer is left in the other buffer; the "
        f"grid has one block, for which `__syncthreads` does: {NO_RULE}",
        "117__memory_crash__c2f7ebb0/broken_start": "its test passes, and all accesses are seen "
        "and within their arrays; threads leave before a barrier, which GPUs allow since 2017",
    },
    "GPUVerify": {
        "loop_unwind": ALIKE,
        "memcpy/fail_overstep": ALIKE,
        "memcpy/lentoobig": ALIKE,
        "memcpy/fail_arrayofstruct": "two lanes write a structure that nobody has set, which is "
        "the same here; that it is read is reported",
        "misc/fail/miscfail2": "the kernel is right: the verifier lacks an invariant",
        "function_pointers/funcptr_to_ptr_add": "the precondition holds for the address of a "
        "function of the device only, which the host program does not have",
        "warpsync/refined_equality_abstraction": "each thread reads what it wrote itself",
    },
}
