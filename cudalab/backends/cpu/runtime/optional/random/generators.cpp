// cuRAND's host interface.
//
// A pseudo-random generator of a GPU consists of thousands of states, one for each subsequence,
// which take turns: number n comes from state n modulo their number (Philox: four numbers in a
// row from each). A normal number needs two of a state's numbers and comes with a second one.

#include <stdlib.h>
#include <string.h>

#include "curand.h"
#include "curand_kernel.h"
#include "library.h"
#include "sobol_directions.h"

struct curandGenerator_st {
    curandRngType_t type;
    curandOrdering_t order;
    bool on_host, fresh;  // fresh: the states are to be made, at `position`
    unsigned long long seed, position;
    unsigned dimensions, count;  // count: of the states
    void* states;
    cudaStream_t stream;
};

namespace cudalab {
namespace {

typedef curandGenerator_t Generator;

bool is_quasi(curandRngType_t type) {
    return type >= CURAND_RNG_QUASI_DEFAULT;
}
bool has_64_bits(curandRngType_t type) {
    return type == CURAND_RNG_QUASI_SOBOL64;
}

// ------------------------------------------------------------------ Sobol's direction vectors

const unsigned DIMENSIONS = sizeof SOBOL / sizeof *SOBOL + 1;

template <class T, int BITS>
void compute_directions(T (*vectors)[BITS]) {
    for (int i = 0; i < BITS; ++i) vectors[0][i] = (T)1 << (BITS - 1 - i);
    for (unsigned d = 1; d < DIMENSIONS; ++d) {
        const unsigned polynomial = SOBOL[d - 1].polynomial;
        const int degree = 31 - __builtin_clz(polynomial);
        T* const v = vectors[d];
        for (int i = 0; i < BITS; ++i) {
            if (i < degree) {
                v[i] = (T)SOBOL[d - 1].first[i] << (BITS - 1 - i);
                continue;
            }
            v[i] = v[i - degree] ^ (v[i - degree] >> degree);
            for (int j = 1; j < degree; ++j)
                if (polynomial >> (degree - j) & 1) v[i] ^= v[i - j];
        }
    }
}
curandDirectionVectors32_t* directions(unsigned) {
    static curandDirectionVectors32_t vectors[DIMENSIONS];
    if (!vectors[0][0]) compute_directions(vectors);
    return vectors;
}
curandDirectionVectors64_t* directions(unsigned long long) {
    static curandDirectionVectors64_t vectors[DIMENSIONS];
    if (!vectors[0][0]) compute_directions(vectors);
    return vectors;
}

// ------------------------------------------------------------------ the states

// Numbers in a row that come from one state.
template <class State>
struct Run {
    static const unsigned length = 1;
};
template <>
struct Run<curandStatePhilox4_32_10> {
    static const unsigned length = 4;
};

void next_subsequence(curandStateXORWOW* state) {
    skipahead_sequence(1, state);
}
void next_subsequence(curandStatePhilox4_32_10* state) {
    skipahead_sequence(1, state);
}
void next_subsequence(curandStateMRG32k3a* state) {
    skipahead_subsequence(1, state);
}

template <class State>
State* states_of(Generator g) {
    if (!g->fresh) return (State*)g->states;
    const unsigned run = Run<State>::length;
    State* const states = (State*)realloc(g->states, g->count * sizeof(State));
    if (!states) return nullptr;
    g->states = states;
    g->fresh = false;
    State first;
    curand_init(g->seed, 0, 0, &first);
    const unsigned long long turns = g->position / run;
    for (unsigned i = 0; i < g->count; ++i) {
        states[i] = first;
        next_subsequence(&first);
        const unsigned long long done = turns / g->count + (i < turns % g->count);
        skipahead(done * run, &states[i]);
    }
    return states;
}

// Fills `to` with what `draw` takes from the states, `width` numbers at a time.
template <class State, class T, class F>
bool fill(Generator g, T* to, size_t count, unsigned width, F draw) {
    State* const states = states_of<State>(g);
    if (!states) return false;
    for (size_t i = 0; i < count; i += width) draw(states + g->position++ % g->count, to + i);
    return true;
}
// Philox: a state's turn is four numbers, whatever their type, and ends with the fourth.
template <class T, class F>
bool fill_fours(Generator g, T* to, size_t count, unsigned width, F draw) {
    typedef curandStatePhilox4_32_10 State;
    State* const states = states_of<State>(g);
    if (!states) return false;
    State state = {};
    T four[4];
    for (size_t i = 0; i < count; ++i) {
        State& own = states[g->position / 4 % g->count];
        const unsigned which = g->position++ % 4;
        if (i == 0 || which == 0) {
            state = own;
            for (unsigned j = 0; j < 4; j += width) draw(&state, four + j);
        }
        to[i] = four[which];
        if (which == 3) own = state;
    }
    return true;
}
template <class T, class F>
bool fill(Generator g, T* to, size_t count, unsigned width, F draw) {
    switch (g->type) {
        case CURAND_RNG_PSEUDO_MRG32K3A:
            return fill<curandStateMRG32k3a>(g, to, count, width, draw);
        case CURAND_RNG_PSEUDO_PHILOX4_32_10:
            return fill_fours(g, to, count, width, draw);
        default:
            return fill<curandStateXORWOW>(g, to, count, width, draw);
    }
}

// All points of the first dimension, then those of the second, and so on.
template <class State, class Word, class T, class F>
bool fill_quasi(Generator g, T* to, size_t count, F draw) {
    const size_t points = count / g->dimensions;
    for (unsigned d = 0; d < g->dimensions; ++d) {
        State state;
        curand_init((const Word*)directions(Word())[d], (Word)g->position, &state);
        for (size_t i = 0; i < points; ++i) draw(&state, to + d * points + i);
    }
    g->position += points;
    return true;
}
template <class T, class F>
bool fill_quasi(Generator g, T* to, size_t count, F draw) {
    if (has_64_bits(g->type))
        return fill_quasi<curandStateSobol64, unsigned long long>(g, to, count, draw);
    return fill_quasi<curandStateSobol32, unsigned>(g, to, count, draw);
}

// ------------------------------------------------------------------ calls

curandStatus_t refuse(LibraryCall& call, curandStatus_t status, const char* why) {
    call.explain("this call fails", "%s", why);
    return status;
}
// For what a GPU can do: nobody shall have to guess why it fails.
curandStatus_t lacks(LibraryCall& call, const char* what) {
    fprintf(stderr, "cudalab: %s:%d: not supported on the CPU device: %s\n", call.place.file,
            call.place.line, what);
    return CURAND_STATUS_TYPE_ERROR;
}

// Checks what all calls have in common, then lets `work` write the numbers.
template <class T, class F>
curandStatus_t generate(LibraryCall& call, Generator g, T* to, size_t count, bool pairs, F work) {
    if (!g) return refuse(call, CURAND_STATUS_NOT_INITIALIZED, "the generator is null");
    if (call.pending()) return CURAND_STATUS_PREEXISTING_FAILURE;
    if (call.is_captured(g->stream, "cuRAND")) return CURAND_STATUS_LAUNCH_FAILURE;
    if (is_quasi(g->type) ? count % g->dimensions != 0 : pairs && count % 2 != 0)
        return refuse(call, CURAND_STATUS_LENGTH_NOT_MULTIPLE,
                      "the count is no multiple of the dimensions, or of two");
    if (count == 0) return CURAND_STATUS_SUCCESS;
    if (g->on_host) {
        (void)*(volatile char*)to;  // device memory ends the program here
        return work() ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
    }
    if (!call.uses(to, count * sizeof(T))) return CURAND_STATUS_LAUNCH_FAILURE;
    Access access;
    if (!work()) return CURAND_STATUS_ALLOCATION_FAILED;
    memory_written(to, count * sizeof(T));
    return CURAND_STATUS_SUCCESS;
}

template <class T, class One, class Pair>
curandStatus_t normal(LibraryCall& call, Generator g, T* to, size_t count, One one, Pair pair) {
    return generate(call, g, to, count, true, [&] {
        return is_quasi(g->type) ? fill_quasi(g, to, count, one) : fill(g, to, count, 2, pair);
    });
}

curandStatus_t create(LibraryCall& call, Generator* generator, curandRngType_t type, bool on_host) {
    if (!generator) return refuse(call, CURAND_STATUS_TYPE_ERROR, "the pointer is null");
    switch (type) {
        case CURAND_RNG_TEST:
        case CURAND_RNG_PSEUDO_DEFAULT:
            type = CURAND_RNG_PSEUDO_XORWOW;
            break;
        case CURAND_RNG_QUASI_DEFAULT:
            type = CURAND_RNG_QUASI_SOBOL32;
            break;
        case CURAND_RNG_PSEUDO_MTGP32:
            return lacks(call, "the generator MTGP32");
        case CURAND_RNG_PSEUDO_MT19937:
            return lacks(call, "the generator MT19937");
        case CURAND_RNG_QUASI_SCRAMBLED_SOBOL32:
        case CURAND_RNG_QUASI_SCRAMBLED_SOBOL64:
            return lacks(call, "scrambled Sobol sequences");
        case CURAND_RNG_PSEUDO_XORWOW:
        case CURAND_RNG_PSEUDO_MRG32K3A:
        case CURAND_RNG_PSEUDO_PHILOX4_32_10:
        case CURAND_RNG_QUASI_SOBOL32:
        case CURAND_RNG_QUASI_SOBOL64:
            break;
        default:
            return refuse(call, CURAND_STATUS_TYPE_ERROR, "the type is not known");
    }
    if (!on_host && call.pending()) return CURAND_STATUS_INITIALIZATION_FAILED;
    Generator g = (Generator)calloc(1, sizeof *g);
    if (!g) return CURAND_STATUS_ALLOCATION_FAILED;
    g->type = type;
    g->order = CURAND_ORDERING_PSEUDO_DEFAULT;
    g->on_host = on_host;
    g->fresh = true;
    g->dimensions = 1;
    g->count = type == CURAND_RNG_PSEUDO_MRG32K3A        ? 81920
               : type == CURAND_RNG_PSEUDO_PHILOX4_32_10 ? 65536
                                                         : 4096;
    *generator = g;
    return CURAND_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cudalab

using namespace cudalab;

#define ENTER(name) LibraryCall call(name, {file, line})
#define NEEDS_GENERATOR \
    if (!g) return refuse(call, CURAND_STATUS_NOT_INITIALIZED, "the generator is null")

curandStatus_t curandCreateGenerator(Generator* g, curandRngType_t type, const char* file,
                                     int line) {
    ENTER("curandCreateGenerator");
    return create(call, g, type, false);
}
curandStatus_t curandCreateGeneratorHost(Generator* g, curandRngType_t type, const char* file,
                                         int line) {
    ENTER("curandCreateGeneratorHost");
    return create(call, g, type, true);
}
curandStatus_t curandDestroyGenerator(Generator g, const char* file, int line) {
    ENTER("curandDestroyGenerator");
    NEEDS_GENERATOR;
    free(g->states);
    free(g);
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetVersion(int* version) {
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
    if ((unsigned)type > PATCH_LEVEL || !value) return CURAND_STATUS_OUT_OF_RANGE;
    const int numbers[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};
    *value = numbers[type];
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(Generator g, cudaStream_t stream, const char* file, int line) {
    ENTER("curandSetStream");
    NEEDS_GENERATOR;
    g->stream = stream;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(Generator g, unsigned long long seed,
                                                  const char* file, int line) {
    ENTER("curandSetPseudoRandomGeneratorSeed");
    NEEDS_GENERATOR;
    if (is_quasi(g->type))
        return refuse(call, CURAND_STATUS_TYPE_ERROR, "a Sobol sequence has no seed");
    g->fresh = true;  // the sequence goes on where it is
    g->seed = seed;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(Generator g, unsigned long long offset, const char* file,
                                        int line) {
    ENTER("curandSetGeneratorOffset");
    NEEDS_GENERATOR;
    g->fresh = true;
    g->position = offset;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOrdering(Generator g, curandOrdering_t order, const char* file,
                                          int line) {
    ENTER("curandSetGeneratorOrdering");
    NEEDS_GENERATOR;
    const bool known = is_quasi(g->type) ? order == CURAND_ORDERING_QUASI_DEFAULT
                                         : order >= CURAND_ORDERING_PSEUDO_BEST &&
                                               order <= CURAND_ORDERING_PSEUDO_DYNAMIC;
    if (!known) return refuse(call, CURAND_STATUS_OUT_OF_RANGE, "the generator has no such order");
    if (order == CURAND_ORDERING_PSEUDO_SEEDED) {
        if (g->type == CURAND_RNG_PSEUDO_XORWOW) lacks(call, "CURAND_ORDERING_PSEUDO_SEEDED");
        return CURAND_STATUS_OUT_OF_RANGE;
    }
    if (g->type == CURAND_RNG_PSEUDO_MRG32K3A) {
        const unsigned count = order == CURAND_ORDERING_PSEUDO_LEGACY ? 4096 : 81920;
        g->fresh |= count != g->count;
        g->count = count;
    }
    g->order = order;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetQuasiRandomGeneratorDimensions(Generator g, unsigned dimensions,
                                                       const char* file, int line) {
    ENTER("curandSetQuasiRandomGeneratorDimensions");
    NEEDS_GENERATOR;
    if (!is_quasi(g->type))
        return refuse(call, CURAND_STATUS_TYPE_ERROR, "only Sobol sequences have dimensions");
    if (dimensions == 0 || dimensions > 20000)
        return refuse(call, CURAND_STATUS_OUT_OF_RANGE, "there are 1 to 20000 dimensions");
    if (dimensions > DIMENSIONS) return lacks(call, "Sobol sequences of more than 128 dimensions");
    g->dimensions = dimensions;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerateSeeds(Generator g, const char* file, int line) {
    ENTER("curandGenerateSeeds");
    NEEDS_GENERATOR;
    return CURAND_STATUS_SUCCESS;  // the states are made when they are needed
}

curandStatus_t curandGenerate(Generator g, unsigned* to, size_t count, const char* file, int line) {
    ENTER("curandGenerate");
    if (g && has_64_bits(g->type))
        return refuse(call, CURAND_STATUS_TYPE_ERROR, "the generator makes numbers of 64 bits");
    const auto draw = [](auto* state, unsigned* x) { *x = (unsigned)curand(state); };
    return generate(call, g, to, count, false, [&] {
        return is_quasi(g->type) ? fill_quasi(g, to, count, draw) : fill(g, to, count, 1, draw);
    });
}
curandStatus_t curandGenerateLongLong(Generator g, unsigned long long* to, size_t count,
                                      const char* file, int line) {
    ENTER("curandGenerateLongLong");
    if (g && !has_64_bits(g->type))
        return refuse(call, CURAND_STATUS_TYPE_ERROR, "the generator makes numbers of 32 bits");
    const auto draw = [](auto* state, unsigned long long* x) { *x = curand(state); };
    return generate(call, g, to, count, false, [&] { return fill_quasi(g, to, count, draw); });
}
curandStatus_t curandGenerateUniform(Generator g, float* to, size_t count, const char* file,
                                     int line) {
    ENTER("curandGenerateUniform");
    const auto draw = [](auto* state, float* x) { *x = curand_uniform(state); };
    return generate(call, g, to, count, false, [&] {
        return is_quasi(g->type) ? fill_quasi(g, to, count, draw) : fill(g, to, count, 1, draw);
    });
}
curandStatus_t curandGenerateUniformDouble(Generator g, double* to, size_t count, const char* file,
                                           int line) {
    ENTER("curandGenerateUniformDouble");
    const auto point = [](auto* state, double* x) { *x = curand_uniform_double(state); };
    const auto draw = [](auto* state, double* x) { *x = precise_uniform(state); };
    return generate(call, g, to, count, false, [&] {
        return is_quasi(g->type) ? fill_quasi(g, to, count, point) : fill(g, to, count, 1, draw);
    });
}
curandStatus_t curandGenerateNormal(Generator g, float* to, size_t count, float mean,
                                    float deviation, const char* file, int line) {
    ENTER("curandGenerateNormal");
    return normal(
        call, g, to, count,
        [=](auto* state, float* x) { *x = mean + deviation * curand_normal(state); },
        [=](auto* state, float* x) {
            const float2 pair = curand_normal2(state);
            x[0] = mean + deviation * pair.x, x[1] = mean + deviation * pair.y;
        });
}
curandStatus_t curandGenerateNormalDouble(Generator g, double* to, size_t count, double mean,
                                          double deviation, const char* file, int line) {
    ENTER("curandGenerateNormalDouble");
    return normal(
        call, g, to, count,
        [=](auto* state, double* x) { *x = mean + deviation * curand_normal_double(state); },
        [=](auto* state, double* x) {
            const double2 pair = curand_normal2_double(state);
            x[0] = mean + deviation * pair.x, x[1] = mean + deviation * pair.y;
        });
}
curandStatus_t curandGenerateLogNormal(Generator g, float* to, size_t count, float mean,
                                       float deviation, const char* file, int line) {
    ENTER("curandGenerateLogNormal");
    return normal(
        call, g, to, count,
        [=](auto* state, float* x) { *x = expf(mean + deviation * curand_normal(state)); },
        [=](auto* state, float* x) {
            const float2 pair = curand_log_normal2(state, mean, deviation);
            x[0] = pair.x, x[1] = pair.y;
        });
}
curandStatus_t curandGenerateLogNormalDouble(Generator g, double* to, size_t count, double mean,
                                             double deviation, const char* file, int line) {
    ENTER("curandGenerateLogNormalDouble");
    return normal(
        call, g, to, count,
        [=](auto* state, double* x) { *x = exp(mean + deviation * curand_normal_double(state)); },
        [=](auto* state, double* x) {
            const double2 pair = curand_log_normal2_double(state, mean, deviation);
            x[0] = pair.x, x[1] = pair.y;
        });
}

curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[],
                                           curandDirectionVectorSet_t set, const char* file,
                                           int line) {
    ENTER("curandGetDirectionVectors32");
    if (set == CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6)
        return lacks(call, "scrambled Sobol sequences");
    if (set != CURAND_DIRECTION_VECTORS_32_JOEKUO6) return CURAND_STATUS_OUT_OF_RANGE;
    *vectors = directions(0u);
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t* vectors[],
                                           curandDirectionVectorSet_t set, const char* file,
                                           int line) {
    ENTER("curandGetDirectionVectors64");
    if (set == CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6)
        return lacks(call, "scrambled Sobol sequences");
    if (set != CURAND_DIRECTION_VECTORS_64_JOEKUO6) return CURAND_STATUS_OUT_OF_RANGE;
    *vectors = directions(0ull);
    return CURAND_STATUS_SUCCESS;
}
