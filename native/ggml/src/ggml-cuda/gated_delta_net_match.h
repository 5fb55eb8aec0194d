// Finds in a graph what gated_delta_net_inputs.cu computes as one. For the host alone, without CUDA: a test counts on any
// machine what is found in a model's graph, so that another order of the operations is seen before it is felt.

#pragma once

#include "ggml-impl.h"

#include <initializer_list>

static constexpr int GDN_INPUTS_CONV = 4; // taps of the convolution

// What comes before a gated delta net of few tokens: the inputs of the convolution and their copy into
// the cells, the convolution, SiLU, the norms of queries and keys, and the two gates.
struct ggml_cuda_gdn_inputs {
    const ggml_tensor * window;  // GET_ROWS: the inputs before these tokens
    const ggml_tensor * qkv;     // F32 [channels, tokens, sequences]
    const ggml_tensor * cells;   // where the last inputs go, one row a sequence
    const ggml_tensor * kernel;  // F32 [4, channels]
    const ggml_tensor * conv;    // SiLU of the convolution; only the values are written
    const ggml_tensor * q_norm;  // RMS_NORM
    const ggml_tensor * k_norm;
    const ggml_tensor * q;       // SCALE of it
    const ggml_tensor * k;
    const ggml_tensor * alpha;   // F32 [value heads, tokens, sequences]
    const ggml_tensor * dt;
    const ggml_tensor * a;
    const ggml_tensor * g;       // softplus(alpha + dt)*a
    const ggml_tensor * beta_in;
    const ggml_tensor * beta;    // sigmoid
    int                 n_nodes; // of the graph, from the first to the last
};

// The operation behind views.
inline const ggml_tensor * gdn_inputs_op(const ggml_tensor * t) {
    while (t->op == GGML_OP_RESHAPE || t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE) {
        t = t->src[0];
    }
    return t;
}

// Whether these operations, of any size, begin at a node of the graph.
inline bool gdn_inputs_match(const ggml_cgraph * cgraph, const int i, ggml_cuda_gdn_inputs & match) {
    static constexpr ggml_op ops[] = {
        GGML_OP_GET_ROWS, GGML_OP_CONCAT, GGML_OP_CPY, GGML_OP_CONT, GGML_OP_SSM_CONV, GGML_OP_UNARY,
        GGML_OP_RMS_NORM, GGML_OP_SCALE, GGML_OP_RMS_NORM, GGML_OP_SCALE,
        GGML_OP_ADD, GGML_OP_UNARY, GGML_OP_MUL, GGML_OP_UNARY, GGML_OP_GATED_DELTA_NET_TRACE,
    };
    static constexpr int n_uses[] = { 1, 2, -1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1 }; // within these operations
    constexpr int n_ops = sizeof(ops)/sizeof(ops[0]);
    using tensors = std::initializer_list<const ggml_tensor *>;

    const ggml_tensor * n[n_ops];
    int last = i;
    for (int k = 0, j = i; k < n_ops; ++j) {
        if (j >= cgraph->n_nodes) {
            return false;
        }
        const ggml_tensor * node = cgraph->nodes[j];
        const bool is_view = node->op == GGML_OP_RESHAPE || node->op == GGML_OP_VIEW || node->op == GGML_OP_PERMUTE || node->op == GGML_OP_TRANSPOSE;
        if (is_view) {
            continue;
        }
        if (node->op != ops[k] || (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) {
            return false;
        }
        if (k < n_ops - 1) {
            if ((node->flags & GGML_TENSOR_FLAG_OUTPUT) != 0 || (n_uses[k] >= 0 && ggml_node_get_use_count(cgraph, j) != n_uses[k])) {
                return false;
            }
            last = j;
        }
        n[k++] = node;
    }
    const ggml_tensor * rows = n[0], * inputs = n[1], * copy = n[2], * turned = n[3], * conv = n[4], * silu = n[5];
    const ggml_tensor * add = n[10], * softplus = n[11], * mul = n[12], * sigmoid = n[13], * gdn = n[14];

    const ggml_tensor * qkv = inputs->src[1];
    const ggml_tensor * v   = gdn->src[5];
    const ggml_tensor * k   = gdn->src[4];

    const int64_t S          = v->ne[0];
    const int64_t H_v        = v->ne[1];
    const int64_t H_k        = k->ne[1];
    const int64_t n_tokens   = v->ne[2];
    const int64_t n_seqs     = v->ne[3];
    const int64_t n_channels = qkv->ne[0];
    const int64_t n_window   = GDN_INPUTS_CONV - 1;
    const size_t  row_size   = n_channels*sizeof(float);

    for (const ggml_tensor * t : tensors{ rows->src[0], qkv, copy, conv->src[1], add, mul, sigmoid }) {
        if (t->type != GGML_TYPE_F32) {
            return false;
        }
    }
    if (n_channels != (2*H_k + H_v)*S) {
        return false;
    }

    // the inputs and where they go
    if (rows->src[1]->type != GGML_TYPE_I32 || !ggml_is_contiguous(rows->src[1]) || ggml_nelements(rows->src[1]) != n_window*n_seqs ||
            !ggml_is_contiguous(rows->src[0]) || rows->src[0]->ne[0] != n_channels) {
        return false;
    }
    if (ggml_get_op_params_i32(inputs, 0) != 1 || gdn_inputs_op(inputs->src[0]) != rows || inputs->src[0]->ne[1] != n_window ||
            !ggml_is_contiguous(qkv) || qkv->ne[1] != n_tokens || qkv->ne[2] != n_seqs || qkv->ne[3] != 1) {
        return false;
    }
    const ggml_tensor * kept  = copy->src[0];
    const ggml_tensor * cells = copy->src[1];
    const int64_t n_kept = kept->ne[0]/n_channels;
    if (kept->view_src != inputs || kept->ne[0] % n_channels != 0 || kept->ne[1] != n_seqs || ggml_nrows(kept) != n_seqs ||
            kept->nb[1] != inputs->nb[2] || kept->view_offs != (n_window + n_tokens - n_kept)*row_size ||
            !ggml_are_same_shape(kept, cells) || cells->nb[0] != sizeof(float)) {
        return false;
    }

    // the convolution
    const ggml_tensor * permuted = turned->src[0];
    if (permuted->view_src != inputs || permuted->nb[0] != inputs->nb[1] || permuted->nb[1] != inputs->nb[0] ||
            permuted->ne[0] != n_window + n_tokens || permuted->ne[1] != n_channels || conv->src[0] != turned ||
            conv->src[1]->ne[0] != GDN_INPUTS_CONV || !ggml_is_contiguous(conv->src[1]) ||
            silu->src[0] != conv || ggml_get_unary_op(silu) != GGML_UNARY_OP_SILU) {
        return false;
    }

    // queries, keys and values
    const auto is_part = [&](const ggml_tensor * t, const int64_t heads, const int64_t first) {
        return t->view_src == silu && t->ne[0] == S && t->ne[1] == heads && t->ne[2] == n_tokens && t->ne[3] == n_seqs &&
            t->nb[1] == S*sizeof(float) && t->nb[2] == row_size && t->nb[3] == n_tokens*row_size && t->view_offs == first*S*sizeof(float);
    };
    if (!is_part(n[6]->src[0], H_k, 0) || !is_part(n[8]->src[0], H_k, H_k) || !is_part(v, H_v, 2*H_k) ||
            n[7]->src[0] != n[6] || n[9]->src[0] != n[8] || gdn->src[3] != n[7] || gdn->src[4] != n[9] ||
            ggml_get_op_params_f32(n[6], 0) != ggml_get_op_params_f32(n[8], 0) ||
            ggml_get_op_params_f32(n[7], 1) != 0.0f || ggml_get_op_params_f32(n[9], 1) != 0.0f) { // no bias
        return false;
    }

    // the gates
    const int64_t n_gates = H_v*n_tokens*n_seqs;
    for (const ggml_tensor * t : tensors{ add->src[0], add, mul, sigmoid->src[0], sigmoid }) {
        if (!ggml_is_contiguous(t) || ggml_nelements(t) != n_gates || t->type != GGML_TYPE_F32) {
            return false;
        }
    }
    for (const ggml_tensor * t : tensors{ add->src[1], mul->src[1] }) {
        if (t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t) || ggml_nelements(t) != H_v) {
            return false;
        }
    }
    if (add->src[0]->ne[0] != H_v || softplus->src[0] != add || ggml_get_unary_op(softplus) != GGML_UNARY_OP_SOFTPLUS ||
            mul->src[0] != softplus || ggml_get_unary_op(sigmoid) != GGML_UNARY_OP_SIGMOID ||
            gdn_inputs_op(gdn->src[6]) != mul || gdn_inputs_op(gdn->src[7]) != sigmoid) {
        return false;
    }

    match = { rows, qkv, cells, conv->src[1], silu, n[6], n[8], n[7], n[9],
        add->src[0], add->src[1], mul->src[1], mul, sigmoid->src[0], sigmoid, last - i + 1 };
    return true;
}
