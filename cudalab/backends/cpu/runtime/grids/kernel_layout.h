// The structures of kernels that Python reads and writes, too.
#pragma once

#include "cudalab_cpu.h"
#include "layout.h"

namespace cudalab {

inline void add_kernels(Layout& layout) {
    layout.add(&Kernel::name, &Kernel::thread, &Kernel::block, &Kernel::num_params,
               &Kernel::param_sizes, &Kernel::arg_bytes, &Kernel::flat, &Kernel::loops,
               &Kernel::by_whole_warps, &Kernel::alike);
    layout.add(&Symbol::address, &Symbol::bytes);
    layout.add(&Tally::barriers, &Tally::warp_barriers, &Tally::updates, &Tally::swaps,
               &Tally::asked);
}

}  // namespace cudalab
