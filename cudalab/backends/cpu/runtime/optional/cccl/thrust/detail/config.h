// Includes <iostream>, as Thrust did before CCCL 3.5 and as programs count on.
#pragma once

#include_next <thrust/detail/config.h>

#include <iostream>
