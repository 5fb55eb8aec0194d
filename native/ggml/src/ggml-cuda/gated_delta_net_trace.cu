#include "gated_delta_net_trace.cuh"
#include "cp-async.cuh"

// The state is stored transposed: column c of S is S contiguous floats. Columns do not depend on
// each other, so a few lanes hold one in registers and all tokens go over it: the old trace is
// committed, the state stored, the new tokens traced. What a tile of tokens brings is read once a
// block, into shared memory, and all reads of the first tiles, old and new, are on their way at once:
// a block does little besides waiting for them.

static constexpr int GDN_TILE    = 16; // tokens
static constexpr int GDN_COLUMNS = 16; // of a block

struct gdn_trace_args {
    float *       state;  // [n_seqs][H_v][S][S]
    float *       trace;  // [n_seqs][trace row]
    const int *   replay; // [n_seqs][2]
    const float * q;
    const float * k;
    const float * v;
    const float * g;
    const float * beta;
    float *       out;    // [n_seqs][n_tokens][H_v][S]
    int H_k, H_v, n_tokens, n_trace;
    int64_t trace_row;
    int64_t sk1, sk2, sk3; // strides of q and k in floats
    int64_t sv1, sv2, sv3;
    float scale;
    bool  aligned; // rows begin at multiples of 16 bytes
};

// Of the trace, where w is u, or of the input, where it is v.
template <int S, bool KDA>
struct gdn_trace_tile {
    float k[GDN_TILE][S];
    float w[GDN_TILE][GDN_COLUMNS];
    float alpha[GDN_TILE][KDA ? S : 1];
};

static __device__ __forceinline__ void gdn_copy_16(float * to, const float * from) {
#ifdef CP_ASYNC_AVAILABLE
    cp_async_cg_16<0>(ggml_cuda_cvta_generic_to_shared(to), from);
#else
    *(float4 *) to = *(const float4 *) from;
#endif // CP_ASYNC_AVAILABLE
}

// Begins to copy the first N floats of n rows; gdn_copied() ends it for the copies of this thread.
template <int N, int THREADS>
static __device__ __forceinline__ void gdn_copy(float (*to)[N], const float * from, const int64_t stride, const int n, const bool aligned) {
    if (aligned) {
#pragma unroll 4
        for (int i = threadIdx.x; i < n*(N/4); i += THREADS) {
            const int row = i / (N/4);
            const int at  = 4*(i % (N/4));
            gdn_copy_16(&to[row][at], from + row*stride + at);
        }
    } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < n*N; i += THREADS) {
            to[i / N][i % N] = from[(i / N)*stride + i % N];
        }
    }
}

static __device__ __forceinline__ void gdn_copied() {
#ifdef CP_ASYNC_AVAILABLE
    cp_async_wait_all();
#endif // CP_ASYNC_AVAILABLE
}

// One column, spread over LANES lanes: lane l holds rows 4*(l + LANES*r) ... +3.
template <int S, bool KDA>
struct gdn_trace_column {
    static constexpr int LANES = S / 4 < 8 ? S / 4 : 8;
    static constexpr int R     = S / (4 * LANES);

    float s[R][4];

    __device__ __forceinline__ void load(const float * column, int lane) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            *(float4 *) s[r] = ((const float4 *) column)[lane + LANES * r];
        }
    }

    __device__ __forceinline__ void store(float * column, int lane) const {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            ((float4 *) column)[lane + LANES * r] = *(const float4 *) s[r];
        }
    }

    // This lane's rows of a vector.
    struct rows {
        float v[R][4];

        __device__ __forceinline__ rows(const float * x, int lane) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                *(float4 *) v[r] = ((const float4 *) x)[lane + LANES * r];
            }
        }
    };

    // Gates of this lane's rows, or the one of all.
    struct gates {
        float v[KDA ? R : 1][KDA ? 4 : 1];

        __device__ __forceinline__ gates(const float * alpha, int lane) {
            if constexpr (KDA) {
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    *(float4 *) v[r] = ((const float4 *) alpha)[lane + LANES * r];
                }
            } else {
                v[0][0] = alpha[0];
            }
        }
    };

    // The two halves of S' = alpha S + k u^T. Replay and run share them, rounding included.
    __device__ __forceinline__ void decay(const gates & alpha) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s[r][i] = __fmul_rn(s[r][i], alpha.v[KDA ? r : 0][KDA ? i : 0]);
            }
        }
    }

    __device__ __forceinline__ void update(const rows & k, float u) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s[r][i] = __fmaf_rn(k.v[r][i], u, s[r][i]);
            }
        }
    }

    // This lane's part of a product; sum() of the parts is the product.
    __device__ __forceinline__ float dot(const rows & x) const {
        float sum[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sum[i] = fmaf(s[r][i], x.v[r][i], sum[i]);
            }
        }
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    static __device__ __forceinline__ float sum(float part) {
        return warp_reduce_sum<LANES>(part);
    }
};

// What a lane needs of a new token.
template <int S, bool KDA>
struct gdn_trace_token {
    using column = gdn_trace_column<S, KDA>;

    typename column::rows  k, q;
    typename column::gates alpha;
    float beta, w;

    __device__ __forceinline__ gdn_trace_token(const gdn_trace_tile<S, KDA> & tile, const float (*tile_q)[S], const float * tile_beta, int i, int lane, int c) :
        k(tile.k[i], lane), q(tile_q[i], lane), alpha(tile.alpha[i], lane), beta(tile_beta[i]), w(tile.w[i][c]) {}
};

template <int S, bool KDA>
__global__ void __launch_bounds__(gdn_trace_column<S, KDA>::LANES * GDN_COLUMNS)
gated_delta_net_trace_cuda(const gdn_trace_args a) {
    using column_t = gdn_trace_column<S, KDA>;
    using token_t  = gdn_trace_token<S, KDA>;
    constexpr int LANES   = column_t::LANES;
    constexpr int THREADS = LANES * GDN_COLUMNS;
    constexpr int G       = KDA ? S : 1;

    __shared__ __align__(16) gdn_trace_tile<S, KDA> old;
    __shared__ __align__(16) gdn_trace_tile<S, KDA> tile;
    __shared__ __align__(16) float tile_q[GDN_TILE][S];
    __shared__ float tile_beta[GDN_TILE];

    const int h    = blockIdx.x;
    const int seq  = blockIdx.y;
    const int col0 = blockIdx.z * GDN_COLUMNS;
    const int hk   = h % a.H_k;

    const int lane = threadIdx.x % LANES;
    const int c    = threadIdx.x / LANES;
    const int col  = col0 + c;

    // The gates' threads: another warp for each array, so that none waits for two.
    const int ta = threadIdx.x;
    const int tb = (threadIdx.x + WARP_SIZE) % THREADS;

    ggml_cuda_pdl_lc();
    ggml_cuda_pdl_sync();

    const int n_replay = min(a.replay[2 * seq], a.n_trace);
    const int half     = a.replay[2 * seq + 1];

    float * trace   = a.trace + seq * a.trace_row;
    float * trace_u = trace + h * S;
    float * trace_k = trace + (int64_t) a.n_trace * a.H_v * S;
    float * trace_g = trace_k + (int64_t) 2 * a.n_trace * a.H_k * S;
    const int64_t half_k = (int64_t) a.n_trace * a.H_k * S;
    const int64_t half_g = (int64_t) a.n_trace * a.H_v * G;

    float * state = a.state + ((int64_t) (seq * a.H_v + h) * S + col) * S;

    const auto copy_tokens = [&](const int t0, const int n) {
        const int64_t at = seq * a.sk3 + t0 * a.sk2 + hk * a.sk1;
        gdn_copy<S, THREADS>(tile.k, a.k + at, a.sk2, n, a.aligned);
        gdn_copy<S, THREADS>(tile_q, a.q + at, a.sk2, n, a.aligned);
        gdn_copy<GDN_COLUMNS, THREADS>(tile.w, a.v + seq * a.sv3 + t0 * a.sv2 + h * a.sv1 + col0, a.sv2, n, a.aligned);
    };
    const auto read_gates = [&](const int t0, const int n) {
        const int64_t at = (int64_t) (seq * a.n_tokens + t0) * a.H_v + h;
        for (int i = ta; i < n * G; i += THREADS) {
            tile.alpha[i / G][i % G] = expf(a.g[(at + (int64_t) (i / G) * a.H_v) * G + i % G]);
        }
        for (int i = tb; i < n; i += THREADS) {
            tile_beta[i] = a.beta[at + (int64_t) i * a.H_v];
        }
    };
    const auto copy_trace = [&](const int t0, const int n) {
        gdn_copy<S, THREADS>(old.k, trace_k + half * half_k + ((int64_t) t0 * a.H_k + hk) * S, (int64_t) a.H_k * S, n, a.aligned);
        gdn_copy<GDN_COLUMNS, THREADS>(old.w, trace_u + (int64_t) t0 * a.H_v * S + col0, (int64_t) a.H_v * S, n, a.aligned);
    };
    const auto read_trace_gates = [&](const int t0, const int n) {
        const int64_t at = half * half_g + ((int64_t) t0 * a.H_v + h) * G;
        for (int i = tb; i < n * G; i += THREADS) {
            old.alpha[i / G][i % G] = expf(trace_g[at + (int64_t) (i / G) * a.H_v * G + i % G]);
        }
    };

    // In this order: what does not depend on `replay` first, what a thread waits for last.
    const int n_first = min(GDN_TILE, a.n_tokens);
    const int n_old   = min(GDN_TILE, n_replay);
    column_t column;
    copy_tokens(0, n_first);
    column.load(state, lane);
    copy_trace(0, n_old);
    read_gates(0, n_first);
    read_trace_gates(0, n_old);
    gdn_copied();
    __syncthreads();

    // 1. commit what was kept of the old trace
    for (int t0 = 0; t0 < n_replay; t0 += GDN_TILE) {
        const int n = min(GDN_TILE, n_replay - t0);
        if (t0 > 0) {
            __syncthreads();
            copy_trace(t0, n);
            read_trace_gates(t0, n);
            gdn_copied();
            __syncthreads();
        }
#pragma unroll 4
        for (int t = 0; t < n; ++t) {
            column.decay({ old.alpha[t], lane });
            column.update({ old.k[t], lane }, old.w[t][c]);
        }
    }

    // 2. to 4. the first n_commit tokens, the state, the others
    const int n_commit = max(0, a.n_tokens - a.n_trace);
    if (n_commit == 0 && n_replay > 0) {
        column.store(state, lane);
    }
    for (int t0 = 0; t0 < a.n_tokens; t0 += GDN_TILE) {
        const int n = min(GDN_TILE, a.n_tokens - t0);
        if (t0 > 0) {
            __syncthreads();
            copy_tokens(t0, n);
            read_gates(t0, n);
            gdn_copied();
            __syncthreads();
        }
        const int i_traced = max(0, n_commit - t0);
        if (blockIdx.z == 0) {
            if (h < a.H_k) {
                for (int i = i_traced * S + threadIdx.x; i < n * S; i += THREADS) {
                    trace_k[(1 - half) * half_k + ((int64_t) (t0 + i / S - n_commit) * a.H_k + h) * S + i % S] = tile.k[i / S][i % S];
                }
            }
            for (int i = i_traced * G + threadIdx.x; i < n * G; i += THREADS) {
                const float g = a.g[((int64_t) (seq * a.n_tokens + t0 + i / G) * a.H_v + h) * G + i % G];
                trace_g[(1 - half) * half_g + ((int64_t) (t0 + i / G - n_commit) * a.H_v + h) * G + i % G] = g;
            }
        }
        // A token's output is added up together with what the next one reads of the state, and the next one's inputs are
        // read before: nothing but the state itself is waited for from one token to the next.
        const int64_t step = (int64_t) a.H_v * S;
        float * out   = a.out + ((int64_t) (seq * a.n_tokens + t0) * a.H_v + h) * S + col;
        float * new_u = trace_u + (int64_t) (t0 - n_commit) * step + col;
        float out_part = 0.0f;
        token_t next(tile, tile_q, tile_beta, 0, lane, c);
#pragma unroll 2
        for (int i = 0; i < n; ++i) {
            const token_t x = next;
            next = token_t(tile, tile_q, tile_beta, min(i + 1, n - 1), lane, c);
            if (t0 + i == n_commit && t0 + i > 0) {
                column.store(state, lane);
            }
            column.decay(x.alpha);
            const float read = column_t::sum(column.dot(x.k));
            const float o    = column_t::sum(out_part);
            const float u    = x.beta * (x.w - read);
            column.update(x.k, u);
            out_part = column.dot(x.q);
            if (lane == 0 && i > 0) {
                out[(i - 1) * step] = o * a.scale;
            }
            if (lane == 0 && t0 + i >= n_commit) {
                new_u[i * step] = u;
            }
        }
        const float o = column_t::sum(out_part);
        if (lane == 0) {
            out[(n - 1) * step] = o * a.scale;
        }
    }
}

template <bool KDA>
static void launch(const gdn_trace_args & args, int S, int n_seqs, cudaStream_t stream) {
    const dim3 blocks(args.H_v, n_seqs, S / GDN_COLUMNS);
    const dim3 threads((S / 4 < 8 ? S / 4 : 8) * GDN_COLUMNS, 1, 1);
    const ggml_cuda_kernel_launch_params params(blocks, threads, 0, stream);
    switch (S) {
        case 16:  ggml_cuda_kernel_launch(gated_delta_net_trace_cuda<16,  KDA>, params, args); break;
        case 32:  ggml_cuda_kernel_launch(gated_delta_net_trace_cuda<32,  KDA>, params, args); break;
        case 64:  ggml_cuda_kernel_launch(gated_delta_net_trace_cuda<64,  KDA>, params, args); break;
        case 128: ggml_cuda_kernel_launch(gated_delta_net_trace_cuda<128, KDA>, params, args); break;
        default:  GGML_ABORT("fatal error");
    }
}

bool ggml_cuda_supports_gated_delta_net_trace(const ggml_tensor * dst) {
    const int64_t S = dst->ne[0];
    return S == 16 || S == 32 || S == 64 || S == 128;
}

void ggml_cuda_op_gated_delta_net_trace(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    const ggml_tensor * state  = dst->src[0];
    const ggml_tensor * trace  = dst->src[1];
    const ggml_tensor * replay = dst->src[2];
    const ggml_tensor * q      = dst->src[3];
    const ggml_tensor * k      = dst->src[4];
    const ggml_tensor * v      = dst->src[5];
    const ggml_tensor * g      = dst->src[6];
    const ggml_tensor * beta   = dst->src[7];

    const int S      = (int) v->ne[0];
    const int n_seqs = (int) v->ne[3];

    gdn_trace_args args;
    args.state     = (float *) state->data;
    args.trace     = (float *) trace->data;
    args.replay    = (const int *) replay->data;
    args.q         = (const float *) q->data;
    args.k         = (const float *) k->data;
    args.v         = (const float *) v->data;
    args.g         = (const float *) g->data;
    args.beta      = (const float *) beta->data;
    args.out       = (float *) dst->data;
    args.H_k       = (int) k->ne[1];
    args.H_v       = (int) v->ne[1];
    args.n_tokens  = (int) v->ne[2];
    args.n_trace   = ggml_get_op_params_i32(dst, 0);
    args.trace_row = trace->nb[1] / sizeof(float);
    args.sk1       = k->nb[1] / sizeof(float);
    args.sk2       = k->nb[2] / sizeof(float);
    args.sk3       = k->nb[3] / sizeof(float);
    args.sv1       = v->nb[1] / sizeof(float);
    args.sv2       = v->nb[2] / sizeof(float);
    args.sv3       = v->nb[3] / sizeof(float);
    args.scale     = 1.0f / sqrtf((float) S);
    args.aligned   = true;
    for (const ggml_tensor * t : { q, k, v, trace }) {
        args.aligned = args.aligned && (uintptr_t) t->data % 16 == 0;
        for (int i = 1; i < GGML_MAX_DIMS; ++i) {
            args.aligned = args.aligned && t->nb[i] % 16 == 0;
        }
    }

    if (g->ne[0] == 1) {
        launch<false>(args, S, n_seqs, ctx.stream());
    } else {
        launch<true>(args, S, n_seqs, ctx.stream());
    }
}
