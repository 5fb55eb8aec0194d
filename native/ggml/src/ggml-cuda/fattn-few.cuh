#pragma once

#include "common.cuh"

// Few queries: the keys are cut in parts that begin at the same keys for any number of queries and of keys, a block of
// threads takes a part for a tile of FATTN_FEW_COLS queries and heads. So a query's result depends neither on the
// queries beside it nor on how many masked keys follow. Many queries share the keys out by the device's occupancy.
#define FATTN_FEW_QUERIES 32
#define FATTN_FEW_COLS    32

// Small parts where there are few keys to be shared, large ones where each costs as much to add up as to compute.
static constexpr __host__ __device__ int ggml_cuda_fattn_part_begin(const int part) {
    return part < 16 ? 64*part : part < 44 ? 1024 + 256*(part - 16) : 8192 + 512*(part - 44);
}

static constexpr __host__ __device__ int ggml_cuda_fattn_n_parts(const int n_kv) {
    return n_kv <= 1024 ? (n_kv + 63)/64 : n_kv <= 8192 ? 16 + (n_kv - 1024 + 255)/256 : 44 + (n_kv - 8192 + 511)/512;
}

// Whether a flash attention is computed this way: grouped queries, a mask, and a cache that is padded to 256.
static inline bool ggml_cuda_fattn_few_queries(const ggml_tensor * dst, const int cc) {
    const ggml_tensor * Q    = dst->src[0];
    const ggml_tensor * K    = dst->src[1];
    const ggml_tensor * V    = dst->src[2];
    const ggml_tensor * mask = dst->src[3];

    const float max_bias = ggml_get_op_params_f32(dst, 1);
    const int   n_sparse = ggml_get_op_params_i32(dst, 4);

    if (!GGML_CUDA_CC_IS_NVIDIA(cc) || !ampere_mma_available(cc) || Q->ne[1] > FATTN_FEW_QUERIES || Q->ne[2] == K->ne[2] ||
            mask == nullptr || max_bias != 0.0f || n_sparse != 0 || K->ne[1] % 256 != 0 ||
            K->ne[0] != V->ne[0] || K->ne[0] > 256 || K->ne[0] % 64 != 0 || K->ne[0] == 192) {
        return false;
    }
    for (const ggml_tensor * t : { Q, K, V, mask }) {
        for (int i = 1; i < GGML_MAX_DIMS; ++i) {
            if (!ggml_is_quantized(t->type) && t->nb[i] % 16 != 0) {
                return false;
            }
        }
    }
    return true;
}
