// Bulk copies and their barriers in plain C++, in the place of common/thread/bulk_copy.cuh on a
// device without them. The threads of a block take turns there, so nothing has to be atomic, and a
// copy has arrived when the call returns.

typedef unsigned long long Barrier;

struct State {
    unsigned phase : 1, used : 1, arrivals : 15, missing : 15;
    int bytes;  // announced and not yet copied
};
static_assert(sizeof(State) == sizeof(Barrier), "a barrier's eight bytes hold it");

__device__ inline State& state_of(Barrier* barrier) {
    return *reinterpret_cast<State*>(barrier);
}
__device__ inline void end_phase_if_complete(State& state) {
    if (state.missing > 0 || state.bytes != 0) return;
    state.phase ^= 1;
    state.missing = state.arrivals;
}
__device__ inline void init_barrier(Barrier* barrier, unsigned arrivals) {
    if (arrivals >= 1 << 15) __trap();
    state_of(barrier) = {0, 1, arrivals, arrivals, 0};
}
__device__ inline void publish_barriers() {}
__device__ inline void arrive(Barrier* barrier) {
    State& state = state_of(barrier);
    if (state.used != 1 || state.missing == 0) __trap();  // not initialised, or too many arrivals
    --state.missing;
    end_phase_if_complete(state);
}
__device__ inline void arrive_expecting(Barrier* barrier, unsigned bytes) {
    state_of(barrier).bytes += (int)bytes;
    arrive(barrier);
}
__device__ inline void wait_for_phase(Barrier* barrier, unsigned parity) {
    for (unsigned tries = 0; ((volatile State*)barrier)->phase == parity; ++tries) {
        if (tries > 1000000) __trap();  // nobody will end it
        __nanosleep(20);
    }
}
__device__ inline void copy_bulk(void* target, const void* source, unsigned bytes,
                                 Barrier* barrier) {
    if ((size_t)target % 16 || (size_t)source % 16 || bytes % 16) __trap();
    memcpy(target, source, bytes);
    State& state = state_of(barrier);
    state.bytes -= (int)bytes;
    end_phase_if_complete(state);
}
