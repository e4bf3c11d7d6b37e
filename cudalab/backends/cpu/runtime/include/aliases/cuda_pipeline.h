#pragma once
#define _CUDA_PIPELINE_H_
#include "cuda_runtime.h"
