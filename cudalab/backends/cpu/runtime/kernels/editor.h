// For clangd, which reads a kernel file as it stands: cudalab edits `extern __shared__ T name[];`
// before it compiles a file. compile_commands.json, which `cudalab new` writes, includes this.
#pragma once

#pragma push_macro("T")  // a macro of kernel files, but not of the runtime
#undef T
#include "cudalab_cpu.h"
#pragma pop_macro("T")

#undef __shared__
#define __shared__
