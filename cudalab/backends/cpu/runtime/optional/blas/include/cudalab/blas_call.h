// One call of a BLAS routine: cuBLAS's functions describe their arguments, in the order in which
// the routine takes them, and blas.cpp checks them and calls the routine of the host's BLAS.
#pragma once

#include "cublas_api.h"

#pragma GCC visibility push(default)
namespace cudalab {

class BlasCall {
  public:
    BlasCall(cublasHandle_t handle_, const char* name_, const char* file_, int line_)
        : handle(handle_), name(name_), file(file_), line(line_) {}

    BlasCall& op(cublasOperation_t op);
    BlasCall& fill(cublasFillMode_t mode);
    BlasCall& diag(cublasDiagType_t type);
    BlasCall& side(cublasSideMode_t mode);
    BlasCall& size(int n);
    BlasCall& length(int n);  // of vectors: nothing is done unless it is positive
    // A number such as alpha, or a few: where they lie depends on the pointer mode.
    template <class T>
    BlasCall& scalar(T* values, int count = 1) {
        return number(values, sizeof(T) * (size_t)count, !std::is_const<T>::value);
    }
    // What the routine returns.
    BlasCall& result(int* value) { return returns(value, 'i'); }
    BlasCall& result(float* value) { return returns(value, 's'); }
    BlasCall& result(double* value) { return returns(value, 'd'); }
    BlasCall& result(cuComplex* value) { return returns(value, 'c'); }
    BlasCall& result(cuDoubleComplex* value) { return returns(value, 'z'); }
    // A vector and its increment.
    template <class T>
    BlasCall& vector(T* x, int n, int increment) {
        return strided(x, sizeof(T), !std::is_const<T>::value, n, increment);
    }
    // A matrix and its leading dimension; a band matrix has its diagonals as rows.
    template <class T>
    BlasCall& matrix(T* a, int rows, int columns, int leading) {
        return pitched(a, sizeof(T), !std::is_const<T>::value, rows, columns, leading);
    }
    // The triangle of a matrix, without gaps.
    template <class T>
    BlasCall& packed(T* a, int n) {
        return add_memory(a, (size_t)n * ((size_t)n + 1) / 2 * sizeof(T), 0, 1,
                          !std::is_const<T>::value);
    }
    // The matrix that is copied to the last one before the routine changes that.
    template <class T>
    BlasCall& from(const T* b, int rows, int columns, int leading) {
        return copied(b, sizeof(T), rows, columns, leading);
    }

    cublasStatus_t run(const char* routine);

  private:
    struct Argument {
        enum { LETTER, INTEGER, NUMBER, MEMORY } kind;
        long long integer;         // or a letter
        const void* pointer;       // to numbers, or memory:
        size_t bytes, gap, count;  // pieces of so many bytes, with gaps in between
        bool written;
    };
    BlasCall& letter(char code, bool valid, const char* why);
    BlasCall& number(const void* values, size_t bytes, bool written);
    BlasCall& returns(void* value, char type);
    BlasCall& strided(const void* x, size_t size, bool written, int n, int increment);
    BlasCall& pitched(const void* a, size_t size, bool written, int rows, int columns, int leading);
    BlasCall& copied(const void* b, size_t size, int rows, int columns, int leading);
    BlasCall& add(Argument argument);
    BlasCall& add_memory(const void* at, size_t bytes, size_t gap, size_t count, bool written);
    void invalid(int number, const char* why);

    cublasHandle_t handle;
    const char *name, *file;
    int line;
    Argument arguments[16] = {}, source = {}, output = {};
    char output_type = 0;
    int count = 0;
    bool level_1 = false, nothing_to_do = false;
    const char* wrong = nullptr;  // why an argument is invalid
    int wrong_number = 0;         // and which, from 1
};

}  // namespace cudalab
#pragma GCC visibility pop
