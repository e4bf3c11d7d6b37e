// Includes <iostream>, as Thrust's random engines did before CCCL 3.5 and as programs count on.
#pragma once

#include_next <thrust/random/linear_congruential_engine.h>

#include <iostream>
