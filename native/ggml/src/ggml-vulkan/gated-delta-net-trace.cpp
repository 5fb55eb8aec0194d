#include "gated-delta-net-trace.h"

#include <array>
#include <cmath>

void ggml_vk_gated_delta_net_trace(ggml_backend_vk_context * ctx, vk_context & subctx, ggml_tensor * dst) {
    const ggml_tensor * src_trace = dst->src[1];
    const ggml_tensor * src_q     = dst->src[3];
    const ggml_tensor * src_v     = dst->src[5];

    GGML_ASSERT(dst->buffer != nullptr);

    const uint32_t S_v      = (uint32_t)src_v->ne[0];
    const uint32_t H_v      = (uint32_t)src_v->ne[1];
    const uint32_t n_tokens = (uint32_t)src_v->ne[2];
    const uint32_t n_seqs   = (uint32_t)src_v->ne[3];

    vk_op_gated_delta_net_trace_push_constants pc = {
        H_v, (uint32_t)src_q->ne[1],
        n_tokens,
        (uint32_t)ggml_get_op_params_i32(dst, 0), (uint32_t)src_trace->ne[0],
        (uint32_t)(src_q->nb[1] / sizeof(float)), (uint32_t)(src_q->nb[2] / sizeof(float)), (uint32_t)(src_q->nb[3] / sizeof(float)),
        (uint32_t)(src_v->nb[1] / sizeof(float)), (uint32_t)(src_v->nb[2] / sizeof(float)), (uint32_t)(src_v->nb[3] / sizeof(float)),
        1.0f / sqrtf((float)S_v),
        {},
    };

    // state and trace are rows of a cache: any of them may begin where a descriptor cannot
    std::array<vk_subbuffer, 9> bufs;
    for (int i = 0; i < 9; i++) {
        const ggml_tensor * t = i < 8 ? dst->src[i] : dst;
        bufs[i] = ggml_vk_tensor_subbuffer(ctx, t, true);
        pc.offsets[i] = get_misalign_bytes(ctx, t) / ggml_type_size(t->type);
    }

    const bool kda = dst->src[6]->ne[0] == S_v;
    vk_pipeline & pipeline = ctx->device->pipeline_gated_delta_net_trace[S_v == 16 ? 0 : S_v == 32 ? 1 : S_v == 64 ? 2 : 3][kda];

    ggml_pipeline_request_descriptor_sets(ctx, pipeline, 1);

    ggml_vk_dispatch_pipeline(ctx, subctx, pipeline,
        {bufs[0], bufs[1], bufs[2], bufs[3], bufs[4], bufs[5], bufs[6], bufs[7], bufs[8]},
        pc, { H_v, n_seqs, S_v });
}
