// What nvcc includes before every .cu file. g++ reads it once and keeps it: a program includes the
// header below itself, and a precompiled header cannot be included twice.
#pragma once

#include <initializer_list>

// The special functions of C++17 are for programs that name one (cudalab/special_functions.h): g++
// would make their templates for each file anew.
#ifdef _GLIBCXX_USE_STD_SPEC_FUNCS
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#define _GLIBCXX_USE_STD_SPEC_FUNCS 0
#endif

#include "cuda_runtime.h"
