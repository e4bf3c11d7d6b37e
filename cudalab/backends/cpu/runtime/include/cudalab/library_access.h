// What a library on the host, such as Thrust, needs of the runtime.
#pragma once

#include "types.h"

namespace cudalab {

// Opens device memory to the host; returns the error of an earlier kernel, which every call of the
// API would return. Within a kernel, where memory is open, nothing happens.
cudaError_t open_for_library();
void close_for_library();

// While an object exists, this thread is in a library's code, which may use device memory.
class LibraryAccess {
  public:
    LibraryAccess() : error(depth++ ? cudaSuccess : open_for_library()) {}
    ~LibraryAccess() {
        if (--depth == 0) close_for_library();
    }
    LibraryAccess(const LibraryAccess&) = delete;
    LibraryAccess& operator=(const LibraryAccess&) = delete;
    const cudaError_t error;

  private:
    static inline __thread unsigned depth;
};

}  // namespace cudalab
