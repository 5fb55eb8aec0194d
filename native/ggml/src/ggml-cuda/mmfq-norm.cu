#include "mmfq.cuh"
#include "norm_match.h"

// Whether the result lies apart from what is read, or where it is read: a thread reads its values before it writes them.
static bool same_or_apart(const ggml_tensor * a, const ggml_tensor * b) {
    const char * pa = (const char *) a->data;
    const char * pb = (const char *) b->data;
    return pa == pb || pa + ggml_nbytes(a) <= pb || pb + ggml_nbytes(b) <= pa;
}

static bool is_aligned(const ggml_tensor * t) {
    return (uintptr_t) t->data % 16 == 0;
}

static bool fits(const ggml_cuda_norm & m) {
    const ggml_tensor * x = m.norm->src[0];
    if (!is_aligned(x) || !is_aligned(m.weight) || !is_aligned(m.out) || !same_or_apart(m.out, x)) {
        return false;
    }
    if (m.gate == nullptr) {
        return ggml_nrows(x) == x->ne[1] && x->ne[0] % 256 == 0 && x->nb[0] == sizeof(float) && x->nb[1] % 16 == 0;
    }
    return x->ne[0] == 128 && m.product->src[1]->ne[0] % 256 == 0 && is_aligned(m.gate) && same_or_apart(m.out, m.gate);
}

int ggml_cuda_try_fuse_mmfq_norm(ggml_backend_cuda_context & ctx, const ggml_cgraph * cgraph, const int i) {
    if (cgraph->nodes[i]->op != GGML_OP_RMS_NORM || ctx.mmfq_src1.buffer == nullptr || ctx.curr_stream_no != 0) {
        return 0;
    }
    ggml_cuda_norm m;
    if (!norm_match(cgraph, i, m) || !ggml_cuda_should_use_mmfq(m.product, ggml_cuda_info().devices[ctx.device].cc) || !fits(m)) {
        return 0;
    }
    if (m.gate == nullptr) {
        ggml_cuda_mmfq_rms_norm(ctx, m.norm, m.weight, m.out, m.product);
    } else {
        ggml_cuda_mmfq_rms_norm_gated(ctx, m.norm, m.weight, m.gate, m.out, m.product);
    }
    return m.n_nodes - 1;
}
