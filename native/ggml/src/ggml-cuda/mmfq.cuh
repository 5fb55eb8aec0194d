#include "common.cuh"

// A matrix of quantized values or of floats of 16 bits times few columns: what a token, or the block
// that verifies drafted tokens, asks of every weight. The weights are read once for 16 columns, and a
// column has the same bits whatever columns stand beside it.

#define MMFQ_MAX_COLS     32 // columns of src1
#define MMFQ_MAX_MATRICES  4 // products of one activation in one launch

// Bytes of the form in which a product's activation is kept.
size_t ggml_cuda_mmfq_src1_size(const ggml_tensor * product);

// Whether a node of the graph writes, as an operation in place, what the product reads.
bool ggml_cuda_mmfq_src1_is_changed(const ggml_tensor * product, const ggml_tensor * node);

// Whether dst = src0*src1, a GGML_OP_MUL_MAT, can be computed here.
bool ggml_cuda_should_use_mmfq(const ggml_tensor * dst, int cc);

// The products dst[0..n-1], which share src1 and the type of src0. With `add` the only product gets
// it added and goes to `out`, with `glu` it is dst[0] = up, dst[1] = gate and their GLU goes to `out`.
struct ggml_cuda_mmfq_fusion {
    const ggml_tensor * add = nullptr;
    const ggml_tensor * glu = nullptr;
    ggml_tensor *       out = nullptr;
};

void ggml_cuda_mul_mat_few_q(ggml_backend_cuda_context & ctx, ggml_tensor * const * dst, int n, const ggml_cuda_mmfq_fusion & fusion = {});

// The norm before such products, with its weights and, in the second form, times SiLU of a gate: the
// result goes to `out`, and quantized to where `product` and others that read its src1, a view of
// `out`, find it.
void ggml_cuda_mmfq_rms_norm(ggml_backend_cuda_context & ctx,
        const ggml_tensor * norm, const ggml_tensor * weight, const ggml_tensor * out, const ggml_tensor * product);
void ggml_cuda_mmfq_rms_norm_gated(ggml_backend_cuda_context & ctx,
        const ggml_tensor * norm, const ggml_tensor * weight, const ggml_tensor * gate, const ggml_tensor * out, const ggml_tensor * product);

// The same where it begins at a node of the graph. Returns the number of nodes to skip, 0 where that is not for these.
int ggml_cuda_try_fuse_mmfq_norm(ggml_backend_cuda_context & ctx, const ggml_cgraph * cgraph, int i);

// How often such products were launched: with tiles of full size, and with those for little shared memory.
void ggml_cuda_mmfq_count(uint64_t * n_whole, uint64_t * n_small);
