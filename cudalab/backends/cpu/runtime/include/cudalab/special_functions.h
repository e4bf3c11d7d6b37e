// std::beta and the like, which cudalab_program.h leaves out of <cmath>.
#pragma once

#if defined(_GLIBCXX_USE_STD_SPEC_FUNCS) && !_GLIBCXX_USE_STD_SPEC_FUNCS
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#define _GLIBCXX_USE_STD_SPEC_FUNCS 1
#include <bits/specfun.h>
#endif
