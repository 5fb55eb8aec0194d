// The constructor of the op, see ggml.h.

#include "ggml-impl.h"

int64_t ggml_gated_delta_net_trace_size(int64_t S, int64_t H_k, int64_t H_v, int64_t G, int64_t n_trace) {
    return n_trace * (H_v * S + 2 * H_k * S + 2 * H_v * G);
}

struct ggml_tensor * ggml_gated_delta_net_trace(
        struct ggml_context * ctx,
        struct ggml_tensor  * state,
        struct ggml_tensor  * trace,
        struct ggml_tensor  * replay,
        struct ggml_tensor  * q,
        struct ggml_tensor  * k,
        struct ggml_tensor  * v,
        struct ggml_tensor  * g,
        struct ggml_tensor  * beta,
        int64_t               n_trace) {
    const int64_t S        = v->ne[0];
    const int64_t H_v      = v->ne[1];
    const int64_t n_tokens = v->ne[2];
    const int64_t n_seqs   = v->ne[3];
    const int64_t H_k      = k->ne[1];

    GGML_ASSERT(ggml_is_contiguous_rows(q) && ggml_is_contiguous_rows(k) && ggml_is_contiguous_rows(v));
    GGML_ASSERT(ggml_are_same_shape(q, k) && ggml_are_same_stride(q, k));
    GGML_ASSERT(k->ne[0] == S && k->ne[2] == n_tokens && k->ne[3] == n_seqs && H_v % H_k == 0);
    GGML_ASSERT(ggml_is_contiguous(g)    && (g->ne[0] == 1 || g->ne[0] == S));
    GGML_ASSERT(g->ne[1] == H_v && g->ne[2] == n_tokens && g->ne[3] == n_seqs);
    GGML_ASSERT(ggml_is_contiguous(beta) && ggml_nelements(beta) == H_v * n_tokens * n_seqs);
    GGML_ASSERT(ggml_is_contiguous(state) && ggml_is_contiguous(trace) && ggml_is_contiguous(replay));
    GGML_ASSERT(state->ne[0] == S && state->ne[1] == S && state->ne[2] == H_v && state->ne[3] == n_seqs);
    GGML_ASSERT(n_trace >= 1);
    GGML_ASSERT(trace->ne[0] == ggml_gated_delta_net_trace_size(S, H_k, H_v, g->ne[0], n_trace) && trace->ne[1] == n_seqs);
    GGML_ASSERT(replay->type == GGML_TYPE_I32 && replay->ne[0] == 2 && replay->ne[1] == n_seqs);
    GGML_ASSERT(q->type == GGML_TYPE_F32 && k->type == GGML_TYPE_F32 && v->type == GGML_TYPE_F32);
    GGML_ASSERT(g->type == GGML_TYPE_F32 && beta->type == GGML_TYPE_F32);
    GGML_ASSERT(state->type == GGML_TYPE_F32 && trace->type == GGML_TYPE_F32);

    struct ggml_tensor * result = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, S, H_v, n_tokens, n_seqs);

    ggml_set_op_params_i32(result, 0, (int32_t) n_trace);

    result->op     = GGML_OP_GATED_DELTA_NET_TRACE;
    result->src[0] = state;
    result->src[1] = trace;
    result->src[2] = replay;
    result->src[3] = q;
    result->src[4] = k;
    result->src[5] = v;
    result->src[6] = g;
    result->src[7] = beta;

    return result;
}
