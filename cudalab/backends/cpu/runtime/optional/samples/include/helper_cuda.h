// The checks of NVIDIA's samples, and how these choose a device.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "cuda_runtime.h"
#include "helper_string.h"

#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

inline const char* _cudaGetErrorEnum(cudaError_t error) {
    return cudaGetErrorName(error);
}
template <typename T>
const char* _cudaGetErrorEnum(T) {  // of a library
    return "<unknown>";
}

template <typename T>
void check(T result, char const* const func, const char* const file, int const line) {
    if (!result) return;
    fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, (int)result,
            _cudaGetErrorEnum(result), func);
    exit(EXIT_FAILURE);
}
#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)

inline void __printLastCudaError(const char* message, const char* file, const int line) {
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s(%i) : getLastCudaError() CUDA error : %s : (%d) %s.\n", file, line, message,
            (int)error, cudaGetErrorString(error));
}
inline void __getLastCudaError(const char* message, const char* file, const int line) {
    if (cudaPeekAtLastError() == cudaSuccess) return;
    __printLastCudaError(message, file, line);
    exit(EXIT_FAILURE);
}
#define getLastCudaError(msg) __getLastCudaError(msg, __FILE__, __LINE__)
#define printLastCudaError(msg) __printLastCudaError(msg, __FILE__, __LINE__)

inline int ftoi(float value) {
    return (int)(value >= 0 ? value + 0.5f : value - 0.5f);
}

// The cores of a multiprocessor.
inline int _ConvertSMVer2Cores(int major, int minor) {
    if (major < 3) return minor ? 48 : 32;
    if (major == 3) return 192;
    const bool is_half = major == 7 || ((major == 6 || major == 8) && minor == 0);
    return is_half ? 64 : 128;
}

inline const char* _ConvertSMVer2ArchName(int major, int minor) {
    if (major == 7) return minor == 5 ? "Turing" : minor == 2 ? "Xavier" : "Volta";
    if (major == 8) return minor == 9 ? "Ada" : "Ampere";
    if (major > 9) return "Blackwell";
    const char* const names[] = {"", "Tesla", "Fermi", "Kepler", "", "Maxwell", "Pascal"};
    return major == 9 ? "Hopper" : names[major];
}

namespace cudalab_samples {
inline int number_of_devices(const char* function) {
    int count = 0;
    checkCudaErrors(cudaGetDeviceCount(&count));
    if (count == 0) {
        fprintf(stderr, "%s() CUDA error: no devices supporting CUDA.\n", function);
        exit(EXIT_FAILURE);
    }
    return count;
}
inline int attribute(cudaDeviceAttr of, int device) {
    int value = 0;
    checkCudaErrors(cudaDeviceGetAttribute(&value, of, device));
    return value;
}
inline const char* architecture(int device, int& major, int& minor) {
    major = attribute(cudaDevAttrComputeCapabilityMajor, device);
    minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
    return _ConvertSMVer2ArchName(major, minor);
}
}  // namespace cudalab_samples

// Makes a device the current one; negative if it cannot.
inline int gpuDeviceInit(int devID) {
    const int count = cudalab_samples::number_of_devices("gpuDeviceInit");
    if (devID < 0) devID = 0;
    if (devID >= count) {
        fprintf(stderr, "\n>> %d CUDA capable GPU device(s) detected. <<\n", count);
        fprintf(stderr, ">> gpuDeviceInit (-device=%d) is not a valid GPU device. <<\n\n", devID);
        return -devID;
    }
    if (cudalab_samples::attribute(cudaDevAttrComputeMode, devID) == cudaComputeModeProhibited) {
        fprintf(stderr, "Error: device is running in <Compute Mode Prohibited>\n");
        return -1;
    }
    checkCudaErrors(cudaSetDevice(devID));
    int major, minor;
    const char* const name = cudalab_samples::architecture(devID, major, minor);
    printf("gpuDeviceInit() CUDA Device [%d]: \"%s\n", devID, name);
    return devID;
}

// The device with the most cores in all, by their clock.
inline int gpuGetMaxGflopsDeviceId() {
    const int count = cudalab_samples::number_of_devices("gpuGetMaxGflopsDeviceId");
    int best = 0;
    double most = -1;
    for (int i = 0; i < count; ++i) {
        int major, minor;
        cudalab_samples::architecture(i, major, minor);
        double speed = _ConvertSMVer2Cores(major, minor);
        speed *= cudalab_samples::attribute(cudaDevAttrMultiProcessorCount, i);
        speed *= cudalab_samples::attribute(cudaDevAttrClockRate, i);
        if (speed > most) most = speed, best = i;
    }
    return best;
}

// The device that `-device=N` names, else the fastest, as the current one.
inline int findCudaDevice(int argc, const char** argv) {
    if (checkCmdLineFlag(argc, argv, "device")) {
        const int device = getCmdLineArgumentInt(argc, argv, "device=");
        if (device < 0 || gpuDeviceInit(device) < 0) {
            printf(device < 0 ? "Invalid command line parameter\n " : "exiting...\n");
            exit(EXIT_FAILURE);
        }
        return device;
    }
    const int device = gpuGetMaxGflopsDeviceId();
    checkCudaErrors(cudaSetDevice(device));
    int major, minor;
    const char* const name = cudalab_samples::architecture(device, major, minor);
    printf("GPU Device %d: \"%s\" with compute capability %d.%d\n\n", device, name, major, minor);
    return device;
}

inline int findIntegratedGPU() {
    const int count = cudalab_samples::number_of_devices("findIntegratedGPU");
    for (int i = 0; i < count; ++i)
        if (cudalab_samples::attribute(cudaDevAttrIntegrated, i)) {
            checkCudaErrors(cudaSetDevice(i));
            return i;
        }
    fprintf(stderr, "CUDA error: No Integrated GPU found that supports CUDA.\n");
    exit(EXIT_FAILURE);
}

inline bool checkCudaCapabilities(int major_version, int minor_version) {
    int device = 0, major, minor;
    checkCudaErrors(cudaGetDevice(&device));
    const char* const name = cudalab_samples::architecture(device, major, minor);
    const bool is_enough =
        major > major_version || (major == major_version && minor >= minor_version);
    if (is_enough) {
        printf("  Device %d: <%16s >, Compute SM %d.%d detected\n", device, name, major, minor);
        return true;
    }
    printf("  No GPU device was found that can support CUDA compute capability %d.%d.\n",
           major_version, minor_version);
    return false;
}
