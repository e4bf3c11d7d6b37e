// cuBLASLt: a product, with a bias and an activation. An epilogue without a bias refuses one.
#include <cublasLt.h>

#include <cstdio>

template <class T>
static T* on_device(const T* values, size_t n) {
    T* p;
    cudaMalloc(&p, n * sizeof(T));
    cudaMemcpy(p, values, n * sizeof(T), cudaMemcpyHostToDevice);
    return p;
}

int main() {
    cublasLtHandle_t handle;
    printf("%d\n", cublasLtCreate(&handle));
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, -1, 2, 0, -3, 1}, bias[] = {10, -20};
    float *on_a = on_device(a, 6), *on_b = on_device(b, 6), *v = on_device(bias, 2), c[4] = {};
    float* on_c = on_device(c, 4);
    const float one = 1, zero = 0;
    for (auto epilogue :
         {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
          CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_RELU}) {
        cublasLtMatmulDesc_t product;
        cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        const cublasOperation_t transposed = CUBLAS_OP_T;
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                       sizeof transposed);
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                       sizeof epilogue);
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &v, sizeof v);
        cublasLtMatrixLayout_t tall, square;
        cublasLtMatrixLayoutCreate(&tall, CUDA_R_32F, 3, 2, 3);
        cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 2, 2, 2);
        const int status = cublasLtMatmul(handle, product, &one, on_a, tall, on_b, tall, &zero,
                                          on_c, square, on_c, square, nullptr, nullptr, 0, 0);
        cudaMemcpy(c, on_c, sizeof c, cudaMemcpyDeviceToHost);
        printf("%d %d: %.4f %.4f %.4f %.4f\n", (int)epilogue, status, c[0], c[1], c[2], c[3]);
        cublasLtMatrixLayoutDestroy(tall);
        cublasLtMatrixLayoutDestroy(square);
        cublasLtMatmulDescDestroy(product);
    }
    printf("%d\n", cublasLtDestroy(handle));
    for (float* p : {on_a, on_b, on_c, v}) cudaFree(p);
}
