#include "common.cuh"

// GGML_OP_TOP_K for few of a row, all rows at once: of equals those that come first, the largest first.
// Whether dst was computed.
bool ggml_cuda_top_k_rows(ggml_backend_cuda_context & ctx, ggml_tensor * dst);
