#pragma once

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_compute_params;

// Rows that must not tell by their bits how many they were in a product: a verify has no more.
#define GGML_CPU_FEW_ROWS 32

// A product with F32, F16 or BF16 weights. False: not one of ours, nothing was done.
bool ggml_cpu_dense_mul_mat(const struct ggml_compute_params * params, struct ggml_tensor * dst);

// By one thread, before others come to share the product: what comes before the weights. False: nothing was done.
bool ggml_cpu_dense_prepare(const struct ggml_compute_params * params, const struct ggml_tensor * op);

#ifdef __cplusplus
}
#endif
