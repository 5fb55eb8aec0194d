#include "common.cuh"
#include "gated_delta_net_match.h"

// Whether operations that the kernel takes begin at a node of the graph.
bool ggml_cuda_match_gdn_inputs(const ggml_cgraph * cgraph, int i, ggml_cuda_gdn_inputs & match);

// Whether no result lies where another block still reads.
bool ggml_cuda_gdn_inputs_are_apart(const ggml_cuda_gdn_inputs & match);

// How often it was launched or captured since the process began.
uint64_t ggml_cuda_gdn_inputs_count();

void ggml_cuda_op_gdn_inputs(ggml_backend_cuda_context & ctx, const ggml_cuda_gdn_inputs & match);
