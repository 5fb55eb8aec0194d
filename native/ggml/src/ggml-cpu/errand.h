// What the last thread to come to a meeting computes for all.

#pragma once

#include "ggml-impl.h"

// What one thread does sooner than several could agree to share it: some thousand values, a microsecond or two.
static bool ggml_cpu_is_small(const struct ggml_tensor * node) {
    const int64_t most = 8192;
    switch (node->op) {
        case GGML_OP_ADD:
        case GGML_OP_CLAMP:
        case GGML_OP_CONCAT:
        case GGML_OP_CONT:
        case GGML_OP_CPY:
        case GGML_OP_DIV:
        case GGML_OP_GLU:
        case GGML_OP_L2_NORM:
        case GGML_OP_MUL:
        case GGML_OP_NORM:
        case GGML_OP_REPEAT:
        case GGML_OP_RMS_NORM:
        case GGML_OP_ROPE:
        case GGML_OP_SCALE:
        case GGML_OP_SOFT_MAX:
        case GGML_OP_SSM_CONV:
        case GGML_OP_SUB:
        case GGML_OP_SUM_ROWS:
        case GGML_OP_UNARY:
            return MAX(ggml_nelements(node), ggml_nelements(node->src[0])) <= most;
        case GGML_OP_GET_ROWS:
            return ggml_nelements(node) <= most;
        case GGML_OP_SET_ROWS:
            return ggml_nelements(node->src[0]) <= most;
        case GGML_OP_MUL_MAT:
            return ggml_nelements(node->src[0]) * ggml_nelements(node->src[1]) / node->src[0]->ne[0] <= 4 * most;
        default:
            return false;
    }
}

static bool ggml_cpu_is_computed(const struct ggml_tensor * node) {
    return !ggml_op_is_empty(node->op) && (node->flags & GGML_TENSOR_FLAG_COMPUTE);
}
