#include "gated_delta_net_inputs.cuh"
#include "unary.cuh"

#include <atomic>

static constexpr int GDN_INPUTS_TOKENS = 32;

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
// the inputs that it overwrites in the cell. Where there are several tokens, threads of a channel share them. One more
// block computes the gates.
template <int S, int max_tokens, int parts>
__launch_bounds__(S*parts, 1)
static __global__ void gdn_inputs_f32(const gdn_inputs_args args) {
    constexpr int n_window = GDN_INPUTS_CONV - 1;
    constexpr int n_own    = max_tokens/parts; // tokens of a thread

    ggml_cuda_pdl_lc();

    const int seq      = blockIdx.y;
    const int head     = blockIdx.x;
    const int n_heads  = 2*args.H_k + args.H_v;
    const int n_tokens = args.n_tokens;

    ggml_cuda_pdl_sync();

    if (head == n_heads) {
        const int64_t at = (int64_t) seq*n_tokens*args.H_v;
        for (int i = threadIdx.x; i < n_tokens*args.H_v; i += S*parts) {
            // both are read before one is written: a result may lie where either was
            const int   h = i % args.H_v;
            const float x = args.alpha[at + i] + args.dt[h];
            const float b = args.beta_in[at + i];
            args.g[at + i]    = (x > 20.0f ? x : logf(1.0f + expf(x)))*args.a[h];
            args.beta[at + i] = 1.0f/(1.0f + expf(-b));
        }
        return;
    }

    const int i_head = threadIdx.x % S;
    const int first  = threadIdx.x / S * n_own; // of the thread's tokens
    const int c      = head*S + i_head;

    float x[n_window + n_own]; // behind the inputs before them
#pragma unroll
    for (int j = 0; j < n_window + n_own; ++j) {
        const int t = first + j - n_window;
        if (j < n_window && t < 0) {
            x[j] = args.rows[(int64_t) args.ids[seq*n_window + j]*args.n_channels + c];
        } else {
            x[j] = t < n_tokens ? args.qkv[((int64_t) seq*n_tokens + t)*args.n_channels + c] : 0.0f;
        }
    }
    const float4 w = ((const float4 *) args.kernel)[c];

    if constexpr (parts > 1) {
        __syncthreads(); // the cell's inputs have been read
    }
    float * cell = args.cells + seq*args.stride_cell + c;
    const int n_skipped = n_window + n_tokens - args.n_kept;
#pragma unroll
    for (int j = 0; j < n_window + n_own; ++j) {
        const int at = first + j; // of the window and the tokens
        if ((j >= n_window || first == 0) && at >= n_skipped && at < n_window + n_tokens) {
            cell[(int64_t) (at - n_skipped)*args.n_channels] = x[j];
        }
    }

    float y[n_own];
#pragma unroll
    for (int t = 0; t < n_own; ++t) {
        float sum = 0.0f;
        sum += x[t + 0]*w.x;
        sum += x[t + 1]*w.y;
        sum += x[t + 2]*w.z;
        sum += x[t + 3]*w.w;
        y[t] = ggml_cuda_op_silu_single(sum);
    }

    if (head >= 2*args.H_k) {
#pragma unroll
        for (int t = 0; t < n_own; ++t) {
            if (first + t < n_tokens) {
                args.conv[((int64_t) seq*n_tokens + first + t)*args.n_channels + c] = y[t];
            }
        }
        return;
    }

    __shared__ float squares[max_tokens][S/WARP_SIZE];
#pragma unroll
    for (int t = 0; t < n_own; ++t) {
        const float sum = warp_reduce_sum(y[t]*y[t]);
        if (threadIdx.x % WARP_SIZE == 0) {
            squares[first + t][i_head/WARP_SIZE] = sum;
        }
    }
    __syncthreads();

    const bool is_q = head < args.H_k;
    float *     dst   = (is_q ? args.q : args.k) + (is_q ? head : head - args.H_k)*S + i_head;
    const float scale = is_q ? args.scale_q : args.scale_k;
#pragma unroll
    for (int t = 0; t < n_own; ++t) {
        if (first + t < n_tokens) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < S/WARP_SIZE; ++i) {
                sum += squares[first + t][i];
            }
            dst[((int64_t) seq*n_tokens + first + t)*args.H_k*S] = scale*(rsqrtf(sum/S + args.eps)*y[t]);
        }
    }
}

bool ggml_cuda_match_gdn_inputs(const ggml_cgraph * cgraph, const int i, ggml_cuda_gdn_inputs & match) {
    return gdn_inputs_match(cgraph, i, match) && match.q->ne[0] == 128 && match.qkv->ne[1] <= GDN_INPUTS_TOKENS;
}

bool ggml_cuda_gdn_inputs_are_apart(const ggml_cuda_gdn_inputs & match) {
    const auto apart = [](const ggml_tensor * a, const ggml_tensor * b) {
        const char * pa = (const char *) a->data;
        const char * pb = (const char *) b->data;
        return pa + ggml_nbytes(a) <= pb || pb + ggml_nbytes(b) <= pa;
    };
    for (const ggml_tensor * out : { match.conv, match.q, match.k, match.g, match.beta }) {
        for (const ggml_tensor * in : { match.qkv, match.alpha, match.beta_in, (const ggml_tensor *) match.window->src[1] }) {
            const bool same_element = (out == match.g || out == match.beta) && (in == match.alpha || in == match.beta_in);
            if (!apart(out, in) && !(same_element && out->data == in->data)) {
                return false;
            }
        }
    }
    return true;
}

static std::atomic<uint64_t> gdn_inputs_n_launched{0};

uint64_t ggml_cuda_gdn_inputs_count() {
    return gdn_inputs_n_launched;
}

void ggml_cuda_op_gdn_inputs(ggml_backend_cuda_context & ctx, const ggml_cuda_gdn_inputs & match) {
    constexpr int S = 128;
    gdn_inputs_n_launched++;

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

    const auto launch = [&](auto kernel, const int parts) {
        const dim3 blocks(2*args.H_k + args.H_v + 1, match.qkv->ne[2], 1);
        ggml_cuda_kernel_launch(kernel, ggml_cuda_kernel_launch_params(blocks, dim3(S*parts, 1, 1), 0, ctx.stream()), args);
    };
    if (args.n_tokens == 1) {
        launch(gdn_inputs_f32<S, 1, 1>, 1);
    } else if (args.n_tokens <= 16) {
        launch(gdn_inputs_f32<S, 16, 4>, 4);
    } else {
        launch(gdn_inputs_f32<S, GDN_INPUTS_TOKENS, 4>, 4);
    }
}
