#pragma once

#include "ggml-vulkan-common.h"

struct vk_op_gated_delta_net_trace_push_constants {
    uint32_t H_v, H_k;
    uint32_t n_tokens;
    uint32_t n_trace, trace_size;
    uint32_t sq1, sq2, sq3;
    uint32_t sv1, sv2, sv3;
    float scale;
    uint32_t offsets[9]; // of the sources and dst in their buffers
};

static_assert(sizeof(vk_op_gated_delta_net_trace_push_constants) <= 128);

// The first sources of a node that it writes in place without being a view of them.
inline uint32_t ggml_vk_num_written_srcs(const ggml_tensor * node) {
    return node->op == GGML_OP_GATED_DELTA_NET_TRACE ? 2 : 0;
}

void ggml_vk_gated_delta_net_trace(ggml_backend_vk_context * ctx, vk_context & subctx, ggml_tensor * dst);
