#include "common.cuh"

// see ggml_gated_delta_net_trace in ggml.h
void ggml_cuda_op_gated_delta_net_trace(ggml_backend_cuda_context & ctx, ggml_tensor * dst);

bool ggml_cuda_supports_gated_delta_net_trace(const ggml_tensor * dst);
