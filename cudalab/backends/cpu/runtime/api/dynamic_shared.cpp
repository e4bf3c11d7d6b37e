// The dynamic shared memory of a block. It lies directly behind the static one, as on a GPU: this
// file is linked behind the program's own, and all shared memory belongs to the OS thread that runs
// the block. A kernel that runs a little over the end of a static array hits this memory.

#include <stddef.h>

namespace cudalab {

static const size_t MOST = 227 << 10;  // as in workers.h
alignas(64) static __thread char memory[MOST];

char* dynamic_shared_memory();
char* dynamic_shared_memory() {
    return memory;
}

}  // namespace cudalab
