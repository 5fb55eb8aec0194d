#include "gated_delta_net_inputs.cuh"
#include "unary.cuh"

static constexpr int GDN_INPUTS_CONV   =  4; // taps of the convolution
static constexpr int GDN_INPUTS_TOKENS = 16;

struct gdn_inputs_args {
    const float * rows;   // inputs of earlier tokens
    const int   * ids;    // the rows of the window, oldest first
    const float * qkv;
    float       * cells;
    const float * kernel;
    float       * conv;
    float       * q;
    float       * k;
    const float * alpha;
    const float * dt;
    const float * a;
    float       * g;
    const float * beta_in;
    float       * beta;
    int64_t       stride_cell;
    int           n_channels, n_tokens, H_k, H_v;
    int           n_kept; // inputs that go into a cell
    float         eps, scale_q, scale_k;
};

// A block of threads takes the channels of a head, for all tokens of a sequence: no other block reads
// the inputs that it overwrites in the cell. One more block computes the gates.
template <int S, int max_tokens>
__launch_bounds__(S, 1)
static __global__ void gdn_inputs_f32(const gdn_inputs_args args) {
    constexpr int n_window = GDN_INPUTS_CONV - 1;

    ggml_cuda_pdl_lc();

    const int seq      = blockIdx.y;
    const int head     = blockIdx.x;
    const int n_heads  = 2*args.H_k + args.H_v;
    const int n_tokens = args.n_tokens;

    ggml_cuda_pdl_sync();

    if (head == n_heads) {
        const int64_t at = (int64_t) seq*n_tokens*args.H_v;
        for (int i = threadIdx.x; i < n_tokens*args.H_v; i += S) {
            const int   h = i % args.H_v;
            const float x = args.alpha[at + i] + args.dt[h];
            args.g[at + i]    = (x > 20.0f ? x : logf(1.0f + expf(x)))*args.a[h];
            args.beta[at + i] = 1.0f/(1.0f + expf(-args.beta_in[at + i]));
        }
        return;
    }

    const int c = head*S + threadIdx.x;

    float x[n_window + max_tokens];
#pragma unroll
    for (int j = 0; j < n_window; ++j) {
        x[j] = args.rows[(int64_t) args.ids[seq*n_window + j]*args.n_channels + c];
    }
#pragma unroll
    for (int t = 0; t < max_tokens; ++t) {
        x[n_window + t] = t < n_tokens ? args.qkv[((int64_t) seq*n_tokens + t)*args.n_channels + c] : 0.0f;
    }
    const float4 w = ((const float4 *) args.kernel)[c];

    float * cell = args.cells + seq*args.stride_cell + c;
    const int n_skipped = n_window + n_tokens - args.n_kept;
#pragma unroll
    for (int j = 0; j < n_window + max_tokens; ++j) {
        if (j >= n_skipped && j < n_window + n_tokens) {
            cell[(int64_t) (j - n_skipped)*args.n_channels] = x[j];
        }
    }

    float y[max_tokens];
#pragma unroll
    for (int t = 0; t < max_tokens; ++t) {
        float sum = 0.0f;
        sum += x[t + 0]*w.x;
        sum += x[t + 1]*w.y;
        sum += x[t + 2]*w.z;
        sum += x[t + 3]*w.w;
        y[t] = ggml_cuda_op_silu_single(sum);
    }

    if (head >= 2*args.H_k) {
#pragma unroll
        for (int t = 0; t < max_tokens; ++t) {
            if (t < n_tokens) {
                args.conv[((int64_t) seq*n_tokens + t)*args.n_channels + c] = y[t];
            }
        }
        return;
    }

    __shared__ float squares[max_tokens][S/WARP_SIZE];
#pragma unroll
    for (int t = 0; t < max_tokens; ++t) {
        const float sum = warp_reduce_sum(y[t]*y[t]);
        if (threadIdx.x % WARP_SIZE == 0) {
            squares[t][threadIdx.x/WARP_SIZE] = sum;
        }
    }
    __syncthreads();

    const bool is_q = head < args.H_k;
    float *     dst   = (is_q ? args.q : args.k) + (is_q ? head : head - args.H_k)*S + threadIdx.x;
    const float scale = is_q ? args.scale_q : args.scale_k;
#pragma unroll
    for (int t = 0; t < max_tokens; ++t) {
        if (t < n_tokens) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < S/WARP_SIZE; ++i) {
                sum += squares[t][i];
            }
            dst[((int64_t) seq*n_tokens + t)*args.H_k*S] = scale*(rsqrtf(sum/S + args.eps)*y[t]);
        }
    }
}

// The operation behind views.
static const ggml_tensor * gdn_inputs_op(const ggml_tensor * t) {
    while (t->op == GGML_OP_RESHAPE || t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE) {
        t = t->src[0];
    }
    return t;
}

bool ggml_cuda_match_gdn_inputs(const ggml_cgraph * cgraph, const int i, ggml_cuda_gdn_inputs & match) {
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
    if (S != 128 || n_tokens > GDN_INPUTS_TOKENS || n_channels != (2*H_k + H_v)*S) {
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

bool ggml_cuda_gdn_inputs_are_apart(const ggml_cuda_gdn_inputs & match) {
    const auto apart = [](const ggml_tensor * a, const ggml_tensor * b) {
        const char * pa = (const char *) a->data;
        const char * pb = (const char *) b->data;
        return pa + ggml_nbytes(a) <= pb || pb + ggml_nbytes(b) <= pa;
    };
    for (const ggml_tensor * out : { match.conv, match.q, match.k, match.g, match.beta }) {
        for (const ggml_tensor * in : { match.qkv, match.alpha, match.beta_in }) {
            const bool same_element = (out == match.g && in == match.alpha) || (out == match.beta && in == match.beta_in);
            if (!apart(out, in) && !(same_element && out->data == in->data)) {
                return false;
            }
        }
    }
    return true;
}

void ggml_cuda_op_gdn_inputs(ggml_backend_cuda_context & ctx, const ggml_cuda_gdn_inputs & match) {
    constexpr int S = 128;

    gdn_inputs_args args = {};
    args.rows        = (const float *) match.window->src[0]->data;
    args.ids         = (const int   *) match.window->src[1]->data;
    args.qkv         = (const float *) match.qkv->data;
    args.cells       = (float       *) match.cells->data;
    args.kernel      = (const float *) match.kernel->data;
    args.conv        = (float       *) match.conv->data;
    args.q           = (float       *) match.q->data;
    args.k           = (float       *) match.k->data;
    args.alpha       = (const float *) match.alpha->data;
    args.dt          = (const float *) match.dt->data;
    args.a           = (const float *) match.a->data;
    args.g           = (float       *) match.g->data;
    args.beta_in     = (const float *) match.beta_in->data;
    args.beta        = (float       *) match.beta->data;
    args.stride_cell = match.cells->nb[1]/sizeof(float);
    args.n_channels  = match.qkv->ne[0];
    args.n_tokens    = match.qkv->ne[1];
    args.H_k         = match.q->ne[1];
    args.H_v         = match.alpha->ne[0];
    args.n_kept      = match.cells->ne[0]/match.qkv->ne[0];
    args.eps         = ggml_get_op_params_f32(match.q_norm, 0);
    args.scale_q     = ggml_get_op_params_f32(match.q, 0);
    args.scale_k     = ggml_get_op_params_f32(match.k, 0);

    const dim3 blocks(2*args.H_k + args.H_v + 1, match.qkv->ne[2], 1);
    const ggml_cuda_kernel_launch_params params(blocks, dim3(S, 1, 1), 0, ctx.stream());
    if (args.n_tokens == 1) {
        ggml_cuda_kernel_launch(gdn_inputs_f32<S, 1>, params, args);
    } else {
        ggml_cuda_kernel_launch(gdn_inputs_f32<S, GDN_INPUTS_TOKENS>, params, args);
    }
}
