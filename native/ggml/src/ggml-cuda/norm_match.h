// Finds in a graph what mmfq-norm.cu computes as one. For the host alone, without CUDA: a test counts on any machine what
// is found in a model's graph, so that another order of the operations is seen before it is felt.

#pragma once

#include "ggml-impl.h"

// A norm, its weights and maybe SiLU of a gate, before a product.
struct ggml_cuda_norm {
    const ggml_tensor * norm;    // RMS_NORM of F32
    const ggml_tensor * weight;  // F32, one row
    const ggml_tensor * gate;    // F32, before SiLU; null where there is none
    const ggml_tensor * out;     // F32, contiguous
    const ggml_tensor * product; // MUL_MAT of it, as it is or reshaped
    int                 n_nodes; // of the graph, from the norm to `out`
};

// Whether these operations, of any size, begin at a node of the graph.
inline bool norm_match(const ggml_cgraph * cgraph, const int i, ggml_cuda_norm & match) {
    constexpr int n_most = 5;
    int idx[n_most]; // this node and the next ones that compute something
    int n = 0;
    for (int j = i; j < cgraph->n_nodes && n < n_most; ++j) {
        const ggml_tensor * node = cgraph->nodes[j];
        const bool is_view = node->op == GGML_OP_RESHAPE || node->op == GGML_OP_VIEW || node->op == GGML_OP_PERMUTE || node->op == GGML_OP_TRANSPOSE;
        if (!is_view && node->op != GGML_OP_NONE && !ggml_is_empty(node)) {
            idx[n++] = j;
        }
    }
    const auto at = [&](const int k) { return k < n ? cgraph->nodes[idx[k]] : nullptr; };
    const auto is = [](const ggml_tensor * t, const ggml_op op) { return t != nullptr && t->op == op; };
    const auto feeds = [&](const ggml_tensor * t, const ggml_tensor * product) {
        return is(product, GGML_OP_MUL_MAT) && ggml_is_contiguous(product->src[1]) &&
            (product->src[1] == t || (product->src[1]->op == GGML_OP_RESHAPE && product->src[1]->src[0] == t));
    };

    const ggml_tensor * norm = at(0);
    const ggml_tensor * mul  = at(1);
    if (!is(norm, GGML_OP_RMS_NORM) || !is(mul, GGML_OP_MUL) || (mul->src[0] != norm && mul->src[1] != norm) || mul->src[0] == mul->src[1]) {
        return false;
    }
    const ggml_tensor * x      = norm->src[0];
    const ggml_tensor * weight = mul->src[0] == norm ? mul->src[1] : mul->src[0];
    if (x->type != GGML_TYPE_F32 || weight->type != GGML_TYPE_F32 || mul->type != GGML_TYPE_F32 || !ggml_is_contiguous(mul) ||
            weight->ne[0] != x->ne[0] || ggml_nrows(weight) != 1 || !ggml_are_same_shape(x, mul)) {
        return false;
    }

    if (feeds(mul, at(2))) {
        static constexpr ggml_op ops[] = { GGML_OP_RMS_NORM, GGML_OP_MUL };
        match = { norm, weight, nullptr, mul, at(2), idx[1] - i + 1 };
        return ggml_can_fuse_subgraph_ext(cgraph, idx, 2, ops, &idx[1], 1);
    }

    const ggml_tensor * silu = at(2);
    const ggml_tensor * out  = at(3);
    if (!is(silu, GGML_OP_UNARY) || ggml_get_unary_op(silu) != GGML_UNARY_OP_SILU || !is(out, GGML_OP_MUL) ||
            !((out->src[0] == mul && out->src[1] == silu) || (out->src[0] == silu && out->src[1] == mul)) || !feeds(out, at(4))) {
        return false;
    }
    const ggml_tensor * gate = silu->src[0];
    if (!ggml_are_same_shape(x, gate) || !ggml_are_same_shape(x, out) || gate->type != GGML_TYPE_F32 || out->type != GGML_TYPE_F32 ||
            !ggml_is_contiguous(x) || !ggml_is_contiguous(gate) || !ggml_is_contiguous(out)) {
        return false;
    }
    static constexpr ggml_op ops[] = { GGML_OP_RMS_NORM, GGML_OP_MUL, GGML_OP_UNARY, GGML_OP_MUL };
    match = { norm, weight, gate, out, at(4), idx[3] - i + 1 };
    return ggml_can_fuse_subgraph_ext(cgraph, idx, 4, ops, &idx[3], 1);
}
