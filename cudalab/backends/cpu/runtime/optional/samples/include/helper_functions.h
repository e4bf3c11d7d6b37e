// What NVIDIA's samples share, without their pictures.
#pragma once
#include <cmath>

#include "helper_string.h"
#include "helper_timer.h"

// Whether the relative distance of two arrays is less than `epsilon`.
inline bool sdkCompareL2fe(const float* reference, const float* data, const unsigned int len,
                           const float epsilon) {
    double difference = 0, size = 0;
    for (unsigned i = 0; i < len; ++i) {
        const double one = (double)reference[i] - data[i];
        difference += one * one, size += (double)reference[i] * reference[i];
    }
    return size > 1e-7 * 1e-7 && std::sqrt(difference / size) < epsilon;
}
