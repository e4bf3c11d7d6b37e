// What headers of NVIDIA's samples do: the output is the one with their own text of these.
#include <helper_cuda.h>
#include <helper_functions.h>
__global__ void k(int* p) {
    *p = 3;
}
int main(int argc, char** argv) {
    const char** words = (const char**)argv;
    int device = findCudaDevice(argc, words);
    int n = 5;
    float f = 0;
    char* text = nullptr;
    double d = -1;
    printf("%d %d %d %d\n", device, checkCmdLineFlag(argc, words, "verbose"),
           checkCmdLineFlag(argc, words, "n"), checkCmdLineFlag(argc, words, "none"));
    n = getCmdLineArgumentInt(argc, words, "n=");
    f = getCmdLineArgumentFloat(argc, words, "f");
    bool has = getCmdLineArgumentString(argc, words, "name", &text);
    bool got = getCmdLineArgumentValue(argc, words, "d", &d);
    printf("%d %g %d %s %d %g\n", n, f, has, text ? text : "null", got, d);
    char name[] = "a/b.pgm", *ext;
    getFileExtension(name, &ext);
    printf("%s %d\n", ext, stringRemoveDelimiter('-', "--x"));
    printf("%d %d %d %d %d %s %s %s\n", _ConvertSMVer2Cores(8, 0), _ConvertSMVer2Cores(7, 5),
           _ConvertSMVer2Cores(9, 0), _ConvertSMVer2Cores(6, 1), _ConvertSMVer2Cores(8, 6),
           _ConvertSMVer2ArchName(7, 5), _ConvertSMVer2ArchName(8, 9),
           _ConvertSMVer2ArchName(9, 0));
    printf("%d %d %d\n", ftoi(2.6f), ftoi(-2.6f), checkCudaCapabilities(3, 0));
    float a[3] = {1, 2, 3}, b[3] = {1, 2, 3.00001f}, c[3] = {1, 2, 4};
    printf("%d %d\n", sdkCompareL2fe(a, b, 3, 1e-4f), sdkCompareL2fe(a, c, 3, 1e-4f));
    char* path = sdkFindFilePath("helpers.cu", argv[0]);
    printf("%s\n", path ? path + strlen(path) - 10 : "none");
    printf("%d\n", sdkFindFilePath("nonesuch.zzz", argv[0]) == nullptr);
    StopWatchInterface* timer = nullptr;
    sdkCreateTimer(&timer);
    printf("%g\n", sdkGetTimerValue(&timer));
    for (int i = 0; i < 2; i++) {
        sdkStartTimer(&timer);
        int* p;
        checkCudaErrors(cudaMalloc(&p, 4));
        k<<<1, 1>>>(p);
        getLastCudaError("k");
        checkCudaErrors(cudaMemcpy(&n, p, 4, cudaMemcpyDeviceToHost));
        sdkStopTimer(&timer);
    }
    float total = sdkGetTimerValue(&timer), average = sdkGetAverageTimerValue(&timer);
    printf("%d %d %d\n", total > 0, average > 0.4 * total && average < 0.6 * total, n);
    sdkResetTimer(&timer);
    printf("%g\n", sdkGetTimerValue(&timer));
    sdkDeleteTimer(&timer);
    printf("%s\n", _cudaGetErrorEnum(cudaErrorInvalidValue));
    fflush(stdout);
    k<<<1, 4096>>>(nullptr);
    if (argc > 6) getLastCudaError("too many");
    printLastCudaError("printed");
    checkCudaErrors(cudaMemcpy(nullptr, nullptr, 8, cudaMemcpyHostToHost));
    checkCudaErrors(cudaSetDevice(99));
}
