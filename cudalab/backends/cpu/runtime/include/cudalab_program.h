// What nvcc includes before every .cu file. g++ reads it once and keeps it: a program includes the
// header below itself, and a precompiled header cannot be included twice.
#pragma once

#include "cuda_runtime.h"
