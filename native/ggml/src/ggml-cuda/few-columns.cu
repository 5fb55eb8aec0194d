#include "few-columns.cuh"
#include "mmfq.cuh"
#include "mmvf.cuh"
#include "mmvq.cuh"

bool ggml_cuda_mul_mat_few_columns(ggml_backend_cuda_context & ctx, const ggml_tensor * src0, const ggml_tensor * src1, ggml_tensor * dst) {
    static_assert(MMVQ_MAX_BATCH_SIZE == MMVF_MAX_BATCH_SIZE, "one size of groups");

    const int     cc = ggml_cuda_info().devices[ctx.device].cc;
    const int64_t n  = src1->ne[1];

    const bool is_q = ggml_cuda_should_use_mmvq(src0->type, cc, /*ne11 =*/ 1);
    if (!ampere_mma_available(cc) || n > MMFQ_MAX_COLS || ggml_nrows(src0) != src0->ne[1] || src1->ne[3] != 1 ||
            !(is_q || ggml_cuda_should_use_mmvf(src0->type, cc, src0->ne, src0->nb, /*ne11 =*/ 1))) {
        return false;
    }

    // `count` groups of `size` columns, the fourth dimension counts the groups
    const auto multiply = [&](const int64_t first, const int64_t size, const int64_t count) {
        const auto columns = [&](const ggml_tensor * t) {
            ggml_tensor group = *t;
            group.data   = (char *) t->data + first*t->nb[1];
            group.ne[1]  = size;
            group.ne[3]  = count;
            group.nb[3]  = size*t->nb[1];
            return group;
        };
        const ggml_tensor y   = columns(src1);
        ggml_tensor       out = columns(dst);
        if (is_q) {
            ggml_cuda_mul_mat_vec_q(ctx, src0, &y, nullptr, &out);
        } else {
            ggml_cuda_mul_mat_vec_f(ctx, src0, &y, nullptr, &out);
        }
    };
    const int64_t in_groups = n - n % MMVQ_MAX_BATCH_SIZE;
    if (in_groups > 0) {
        multiply(0, MMVQ_MAX_BATCH_SIZE, in_groups/MMVQ_MAX_BATCH_SIZE);
    }
    if (in_groups < n) {
        multiply(in_groups, n - in_groups, 1);
    }
    return true;
}
