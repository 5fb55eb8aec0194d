#pragma once

#include "common.cuh"

// Flash attention of few queries, as a token or the block that verifies drafted tokens asks for it. The keys are cut at
// the same places for any number of queries and of keys, and each query and head is computed alone. So a query's result
// has the same bits whatever queries stand beside it and however many masked keys follow.

// Whether a flash attention is computed this way: up to 32 queries, grouped, a mask, and a cache that is padded to 256.
bool ggml_cuda_should_use_fattn_few(const ggml_tensor * dst, int device);

void ggml_cuda_flash_attn_ext_few(ggml_backend_cuda_context & ctx, ggml_tensor * dst);
