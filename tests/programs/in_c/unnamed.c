/* As old C has it: without the header, the linker finds the function by its name. */
#include "data.h"

int cudaGetDeviceCount(int*);

int devices(void) {
    int class = 0; /* a name that C++ does not allow */
    cudaGetDeviceCount(&class);
    return class;
}
