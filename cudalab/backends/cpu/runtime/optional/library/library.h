// Calls of library functions, such as those of cuBLAS, that read and write the device's memory.
#pragma once

#include "internal.h"

namespace cudalab {

// Opens device memory for as long as it lives, through `access`, and knows who called.
class LibraryCall : public Call {
  public:
    using Call::Call;
    // Whether the device can use this memory. If not, the call ends as a kernel does that uses it.
    bool uses(const void* at, size_t bytes);
    // Whether the call is in a stream that is captured, which graphs do not do with `library`; a
    // line on stderr says so.
    bool is_captured(cudaStream_t stream, const char* library) const;
    // Reports why the function returns `status`, if anybody listens.
    void explain(const char* status, const char* why, ...) __attribute__((format(printf, 3, 4)));
};

}  // namespace cudalab
