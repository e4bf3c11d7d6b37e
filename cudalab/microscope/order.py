"""Explains to students what is wrong with the order of a program's work."""

# kind -> title, why, cure
KINDS = {
    "stream_race": (
        "streams that do not wait for each other",
        (
            "Work of different streams may overlap, or run in either order, unless something "
            "orders it. Here one has always ended before the other begins; on a GPU that is "
            "luck."
        ),
        (
            "Record an event behind the first (cudaEventRecord) and let the other stream wait "
            "for it (cudaStreamWaitEvent), give both to one stream, or wait on the host between"
            " them (cudaStreamSynchronize, cudaDeviceSynchronize)."
        ),
    ),
    "host_race": (
        "host that does not wait",
        (
            "A launch returns at once, and so do asynchronous copies and fills: the work may "
            "not even have begun when the host goes on. Here it has always ended; on a GPU that"
            " is luck."
        ),
        (
            "Wait before the host uses the memory: cudaDeviceSynchronize(), "
            "cudaStreamSynchronize(stream) or cudaEventSynchronize(event)."
        ),
    ),
    "freed_in_use": (
        "memory freed while it is in use",
        (
            "cudaFreeAsync takes the memory back as soon as its own stream gets there, and "
            "another allocation may have it then."
        ),
        (
            "Let the stream that frees it wait first: cudaEventRecord in the stream that uses "
            "the memory, and cudaStreamWaitEvent before cudaFreeAsync."
        ),
    ),
    "used_too_early": (
        "memory used before it is allocated",
        (
            "cudaMallocAsync allocates when its stream gets there. The address is known at "
            "once, but the memory is not there yet for another stream."
        ),
        (
            "Let the other stream wait: cudaEventRecord behind cudaMallocAsync, then "
            "cudaStreamWaitEvent."
        ),
    ),
    "copy_under_way": (
        "copy that may still be under way",
        (
            "cudaMemcpy from pageable memory returns when it has read its source; the copy to "
            "the device may then still be under way. Streams made with cudaStreamNonBlocking do"
            " not wait for it."
        ),
        (
            "Copy in the stream that uses the data (cudaMemcpyAsync), or call "
            "cudaStreamSynchronize(0) after the copy."
        ),
    ),
}
