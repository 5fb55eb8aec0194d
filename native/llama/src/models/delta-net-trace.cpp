// Rollback by trace as plain operations: what ggml_gated_delta_net_trace does (see there), for devices without it.
//
// The number of tokens that are committed is data: a mask leaves the others out, so the graph has the same shape
// whatever was accepted.

#include "models.h"

#include "llama-memory-recurrent.h"

// tokens [first, first + n) of x: [ne0, ne1, n_tokens, n_seqs]
static ggml_tensor * trace_tokens(ggml_context * ctx0, ggml_tensor * x, int64_t first, int64_t n) {
    if (first == 0 && n == x->ne[2]) {
        return x;
    }
    return ggml_view_4d(ctx0, x, x->ne[0], x->ne[1], n, x->ne[3], x->nb[1], x->nb[2], x->nb[3], first * x->nb[2]);
}

// with the strides of a tensor of its own, which a view of a single token lacks
static ggml_tensor * trace_contiguous(ggml_context * ctx0, ggml_tensor * x) {
    return ggml_is_contiguous(x) ? ggml_reshape_4d(ctx0, x, x->ne[0], x->ne[1], x->ne[2], x->ne[3]) : ggml_cont(ctx0, x);
}

// the same with tokens innermost: [n_tokens, ne0, ne1, n_seqs]
static ggml_tensor * trace_tokens_first(ggml_context * ctx0, ggml_tensor * x) {
    return ggml_cont(ctx0, ggml_permute(ctx0, x, 1, 2, 0, 3));
}

// The delta net over a few tokens at once. With D[i, j] = exp(g_{j+1} + .. + g_i), and D[i, -1] from the state on, what they
// add to the state, u_t = beta_t (v_t - (alpha_t S_{t-1})^T k_t), is the solution of a triangular system:
//
//   u_i + beta_i sum_{j < i} D[i, j] (k_j . k_i) u_j = beta_i (v_i - (D[i, -1] S)^T k_i)
static llm_delta_net_result trace_block(ggml_context * ctx0, const llm_delta_net_cb & cb,
        ggml_tensor * q, ggml_tensor * k, ggml_tensor * v, ggml_tensor * g, ggml_tensor * b, ggml_tensor * s, int il) {
    const int64_t S      = v->ne[0];
    const int64_t H      = v->ne[1];
    const int64_t n      = v->ne[2];
    const int64_t n_seqs = v->ne[3];
    const int64_t G      = g->ne[0];
    const int64_t HB     = H * n_seqs;

    const auto transposed = [&](ggml_tensor * x) { return ggml_cont(ctx0, ggml_transpose(ctx0, x)); };
    // [ne0, n, H, n_seqs]. Products of views are in half precision on Vulkan: what is multiplied is contiguous.
    const auto by_head = [&](ggml_tensor * x) {
        x = ggml_cont(ctx0, ggml_permute(ctx0, x, 0, 2, 1, 3));
        return x->ne[2] == H ? x : ggml_repeat_4d(ctx0, x, x->ne[0], n, H, n_seqs);
    };
    q = ggml_scale(ctx0, by_head(q), 1.0f / sqrtf(S));
    k = by_head(k);
    v = by_head(v);
    b = by_head(b);
    g = trace_tokens_first(ctx0, g); // [n, G, H, n_seqs]
    ggml_tensor * k_b = ggml_mul(ctx0, k, b);

    // Each sum of gates by itself: of the difference of two long sums no digits are left once a gate was large.
    // [i, j, G*H*n_seqs] the gate of token i if it comes behind token j
    ggml_tensor * after = ggml_repeat_4d(ctx0, ggml_reshape_3d(ctx0, g, n, 1, G * HB), n, n, G * HB, 1);
    after = ggml_tri(ctx0, after, GGML_TRI_TYPE_UPPER);
    ggml_tensor * decay = ggml_exp(ctx0, ggml_cumsum(ctx0, after));                                                       // D[i, j]
    ggml_tensor * since = transposed(ggml_exp(ctx0, ggml_cumsum(ctx0, g)));                                               // D[i, -1]
    ggml_tensor * until = transposed(ggml_exp(ctx0, ggml_reshape_4d(ctx0, ggml_sum_rows(ctx0, after), n, G, H, n_seqs))); // D[n - 1, j]
    ggml_tensor * whole = ggml_exp(ctx0, ggml_reshape_4d(ctx0, ggml_sum_rows(ctx0, g), G, 1, H, n_seqs));                 // D[n - 1, -1]

    // [j, i, H, n_seqs] D[i, j] (k_j . x_i)
    if (G == 1) {
        decay = transposed(ggml_reshape_4d(ctx0, decay, n, n, H, n_seqs));
    } else {
        decay = ggml_permute(ctx0, ggml_reshape_4d(ctx0, decay, n, n, S, HB), 1, 2, 0, 3);
        decay = ggml_cont_4d(ctx0, decay, S, n, n, HB); // [S, i, j, H*n_seqs]
    }
    const auto with_keys = [&](ggml_tensor * x) {
        if (G == 1) {
            return ggml_mul(ctx0, ggml_mul_mat(ctx0, k, x), decay);
        }
        x = ggml_mul(ctx0, decay, ggml_reshape_4d(ctx0, x, S, n, 1, HB));
        x = ggml_mul_mat(ctx0, x, ggml_reshape_4d(ctx0, k, S, 1, n, HB)); // [i, 1, j, H*n_seqs]
        return transposed(ggml_reshape_4d(ctx0, x, n, n, H, n_seqs));
    };

    // the inverse of that system, which is smaller than its right-hand side: (1 + L) X = -L, X + 1 = (1 + L)^-1
    ggml_tensor * lower   = ggml_tri(ctx0, with_keys(k_b), GGML_TRI_TYPE_LOWER);
    ggml_tensor * one     = ggml_diag(ctx0, ggml_fill(ctx0, ggml_view_1d(ctx0, lower, n, 0), 1.0f));
    ggml_tensor * inverse = ggml_solve_tri(ctx0, ggml_add(ctx0, lower, one), ggml_neg(ctx0, lower), true, true, false);
    inverse = ggml_add(ctx0, inverse, one);

    // [n, S, H, n_seqs]
    ggml_tensor * known = ggml_mul_mat(ctx0, s, ggml_mul(ctx0, k, since));
    ggml_tensor * u_t   = transposed(ggml_mul(ctx0, ggml_sub(ctx0, v, known), b));
    ggml_tensor * u     = ggml_mul_mat(ctx0, u_t, inverse);
    cb(u, "delta_net_u", il);
    u_t = transposed(u);

    ggml_tensor * output = ggml_mul_mat(ctx0, u_t, ggml_tri(ctx0, with_keys(q), GGML_TRI_TYPE_LOWER_DIAG));
    output = ggml_add(ctx0, output, ggml_mul_mat(ctx0, s, ggml_mul(ctx0, q, since)));

    s = ggml_add(ctx0, ggml_mul(ctx0, s, whole), ggml_mul_mat(ctx0, transposed(ggml_mul(ctx0, k, until)), u_t));
    cb(s, "delta_net_state", il);

    return { ggml_permute(ctx0, output, 0, 2, 1, 3), s, ggml_permute(ctx0, u, 0, 2, 1, 3) };
}

static llm_delta_net_result trace_run(ggml_context * ctx0, const llm_delta_net_cb & cb,
        ggml_tensor * q, ggml_tensor * k, ggml_tensor * v, ggml_tensor * g, ggml_tensor * b, ggml_tensor * s,
        int64_t first, int64_t n, int il) {
    const int64_t most = g->ne[0] == 1 ? 64 : 16; // tokens of a block; with a gate for each channel it is S times as large
    llm_delta_net_result all = { nullptr, s, nullptr };
    for (const int64_t end = first + n; first < end; first += n) {
        n = std::min(most, end - first);
        const auto of = [&](ggml_tensor * x) { return trace_tokens(ctx0, x, first, n); };
        const auto one = [&](ggml_tensor * x) { return trace_contiguous(ctx0, of(x)); };
        const auto part = n == 1
            ? llm_delta_net_step(ctx0, cb, one(q), one(k), of(v), one(g), one(b), all.state, il)
            : trace_block(ctx0, cb, of(q), of(k), of(v), of(g), of(b), all.state, il);
        all.output = all.output ? ggml_concat(ctx0, all.output, part.output, 2) : part.output;
        all.u      = all.u      ? ggml_concat(ctx0, all.u,      part.u,      2) : part.u;
        all.state  = part.state;
    }
    return all;
}

ggml_tensor * llm_delta_net_trace(ggml_context * ctx0, ggml_cgraph * gf, const llm_delta_net_cb & cb,
        const llm_delta_net_trace_cells & cells,
        ggml_tensor * q, ggml_tensor * k, ggml_tensor * v, ggml_tensor * g, ggml_tensor * b, int il) {
    const int64_t S        = v->ne[0];
    const int64_t H_v      = v->ne[1];
    const int64_t n_tokens = v->ne[2];
    const int64_t n_seqs   = v->ne[3];
    const int64_t H_k      = k->ne[1];
    const int64_t G        = g->ne[0]; // of a gate: 1, or S for KDA
    const int64_t n_trace  = cells.mask->ne[0];
    const int64_t n_traced = std::min(n_tokens, n_trace);
    const int64_t n_commit = n_tokens - n_traced;

    ggml_tensor * trace = cells.trace;
    GGML_ASSERT(trace->ne[0] == ggml_gated_delta_net_trace_size(S, H_k, H_v, G, n_trace) && trace->ne[1] == n_seqs);
    GGML_ASSERT(H_v % H_k == 0 && cells.rows->ne[0] == n_traced);

    // a row of the trace: u [n_trace][H_v][S], k [2][n_trace][H_k][S], g [2][n_trace][H_v][G]
    const size_t  size   = ggml_type_size(trace->type);
    const int64_t row_u  = H_v * S;
    const int64_t row_k  = H_k * S;
    const int64_t row_g  = H_v * G;
    const size_t  keys   = size * n_trace * row_u;
    const size_t  gates  = size * n_trace * (row_u + 2 * row_k);

    // the half of the old trace
    ggml_tensor * half  = ggml_view_2d(ctx0, cells.replay, 1, n_seqs, cells.replay->nb[1], ggml_type_size(cells.replay->type));
    const auto old_half = [&](int64_t row, size_t offset) {
        const int64_t n = n_trace * row;
        return ggml_get_rows(ctx0, ggml_view_3d(ctx0, trace, n, 2, n_seqs, size * n, trace->nb[1], offset), half);
    };
    ggml_tensor * old_k = trace_tokens_first(ctx0, ggml_reshape_4d(ctx0, old_half(row_k, keys),  S, H_k, n_trace, n_seqs));
    ggml_tensor * old_g = trace_tokens_first(ctx0, ggml_reshape_4d(ctx0, old_half(row_g, gates), G, H_v, n_trace, n_seqs));
    ggml_tensor * old_u = trace_tokens_first(ctx0,
            ggml_view_4d(ctx0, trace, S, H_v, n_trace, n_seqs, size * S, size * row_u, trace->nb[1], 0));

    // S' = exp(g_0 + .. + g_{a-1}) S + sum_t exp(g_{t+1} + .. + g_{a-1}) k_t u_t^T, t < a
    ggml_tensor * mask = ggml_reshape_4d(ctx0, cells.mask, n_trace, 1, 1, n_seqs);
    old_g = ggml_mul(ctx0, old_g, mask);

    ggml_tensor * after = ggml_reshape_3d(ctx0, old_g, n_trace, 1, G * H_v * n_seqs);
    after = ggml_tri(ctx0, ggml_repeat_4d(ctx0, after, n_trace, n_trace, after->ne[2], 1), GGML_TRI_TYPE_UPPER);
    after = ggml_reshape_4d(ctx0, ggml_sum_rows(ctx0, after), n_trace, G, H_v, n_seqs);
    ggml_tensor * weight = ggml_mul(ctx0, ggml_exp(ctx0, after), mask);
    cb(weight, "replay_weight", il);

    if (H_k != H_v) {
        old_k = ggml_repeat_4d(ctx0, old_k, n_trace, S, H_v, n_seqs);
    }
    ggml_tensor * added = ggml_mul_mat(ctx0, ggml_mul(ctx0, old_k, weight), old_u); // [S, S, H_v, n_seqs]
    ggml_tensor * decay = ggml_exp(ctx0, ggml_reshape_4d(ctx0, ggml_sum_rows(ctx0, old_g), G, 1, H_v, n_seqs));

    ggml_tensor * state = ggml_add(ctx0, ggml_mul(ctx0, cells.state, decay), added);
    cb(state, "replay_state", il);

    ggml_tensor * output = nullptr;
    if (n_commit > 0) {
        const auto commit = trace_run(ctx0, cb, q, k, v, g, b, state, 0, n_commit, il);
        output = commit.output;
        state  = commit.state;
    }
    ggml_build_forward_expand(gf, ggml_cpy(ctx0, state, cells.state));

    const auto traced = trace_run(ctx0, cb, q, k, v, g, b, state, n_commit, n_traced, il);
    output = output ? ggml_concat(ctx0, output, traced.output, 2) : traced.output;

    // u needs the state, and with that all that was read of the old trace
    ggml_build_forward_expand(gf, ggml_cpy(ctx0, traced.u,
            ggml_view_4d(ctx0, trace, S, H_v, n_traced, n_seqs, size * S, size * row_u, trace->nb[1], 0)));

    const auto set_half = [&](ggml_tensor * x, int64_t row, size_t offset) {
        x = ggml_cont_3d(ctx0, trace_tokens(ctx0, x, n_commit, n_traced), row, n_traced, n_seqs);
        ggml_build_forward_expand(gf, ggml_set_rows(ctx0,
                ggml_view_3d(ctx0, trace, row, 2 * n_trace, n_seqs, size * row, trace->nb[1], offset), x, cells.rows));
    };
    set_half(k, row_k, keys);
    set_half(g, row_g, gates);

    return output;
}
