#pragma once

#include "common.cuh"

// dst = src0*src1 for a matrix and up to 32 columns, where there is no kernel of its own for few columns: by the
// kernels that take one column, so that a column has the same bits whatever columns stand beside it. Returns
// false where these kernels are not for.
bool ggml_cuda_mul_mat_few_columns(ggml_backend_cuda_context & ctx, const ggml_tensor * src0, const ggml_tensor * src1, ggml_tensor * dst);
