// The cuBLASLt functions that we call, from a library that is loaded on the first call. Linked
// normally, it would take 94 MiB in every process at start-up, and ranks on CPUs, of which a
// machine may have many, never use it. (cuDNN loads its own parts in the same way.) `assay run` can
// still count products: its library wraps what dlsym returns.
#include <cublasLt.h>
#include <dlfcn.h>

#include <array>

namespace assay::train::cuda {
namespace {

void* cublas_library() {
  // Found as the linker would: by name, in this program's own search path.
  static void* const library = [] {
    for (const char* name : std::array{"libcublasLt.so.13", ASSAY_CUBLASLT}) {
      if (void* found = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return found;
    }
    return static_cast<void*>(nullptr);
  }();
  return library;
}

template <class Function>
Function cublas_function(const char* name) {
  void* library = cublas_library();
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace
}  // namespace assay::train::cuda

// NOLINTBEGIN(readability-identifier-naming)
#define ASSAY_FORWARD(name, missing, ...)                                                   \
  static const auto function = assay::train::cuda::cublas_function<decltype(&name)>(#name); \
  return function == nullptr ? missing : function(__VA_ARGS__)

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  ASSAY_FORWARD(cublasLtCreate, CUBLAS_STATUS_NOT_INITIALIZED, handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  ASSAY_FORWARD(cublasLtDestroy, CUBLAS_STATUS_NOT_INITIALIZED, handle);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  ASSAY_FORWARD(cublasLtGetStatusString, "libcublasLt.so.13 was not found", status);
}
size_t cublasLtGetVersion(void) {
  ASSAY_FORWARD(cublasLtGetVersion, 0, );
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  ASSAY_FORWARD(cublasLtMatmul, CUBLAS_STATUS_NOT_INITIALIZED, handle, product, alpha, a, a_layout,
                b, b_layout, beta, c, c_layout, d, d_layout, algo, workspace, workspace_bytes,
                stream);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  ASSAY_FORWARD(cublasLtMatmulAlgoGetHeuristic, CUBLAS_STATUS_NOT_INITIALIZED, handle, product, a,
                b, c, d, preference, requested, results, found);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  ASSAY_FORWARD(cublasLtMatmulDescCreate, CUBLAS_STATUS_NOT_INITIALIZED, product, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  ASSAY_FORWARD(cublasLtMatmulDescDestroy, CUBLAS_STATUS_NOT_INITIALIZED, product);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  ASSAY_FORWARD(cublasLtMatmulDescSetAttribute, CUBLAS_STATUS_NOT_INITIALIZED, product, attribute,
                value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  ASSAY_FORWARD(cublasLtMatmulPreferenceCreate, CUBLAS_STATUS_NOT_INITIALIZED, preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  ASSAY_FORWARD(cublasLtMatmulPreferenceDestroy, CUBLAS_STATUS_NOT_INITIALIZED, preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  ASSAY_FORWARD(cublasLtMatmulPreferenceSetAttribute, CUBLAS_STATUS_NOT_INITIALIZED, preference,
                attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  ASSAY_FORWARD(cublasLtMatrixLayoutCreate, CUBLAS_STATUS_NOT_INITIALIZED, layout, type, rows,
                columns, stride);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  ASSAY_FORWARD(cublasLtMatrixLayoutSetAttribute, CUBLAS_STATUS_NOT_INITIALIZED, layout, attribute,
                value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  ASSAY_FORWARD(cublasLtMatrixLayoutDestroy, CUBLAS_STATUS_NOT_INITIALIZED, layout);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
