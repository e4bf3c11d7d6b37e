// Four neighbouring elements, read and written 16 bytes at a time.
#pragma once

struct alignas(16) Four {
    T v[4];
};
