#include "fattn-few.cuh"

#include "convert.cuh"
#include "cp-async.cuh"
#include "fattn-common.cuh"
#include "mma.cuh"

#include <cfloat>

using namespace ggml_cuda_mma;

// The queries of the heads that share keys are columns. A block of threads takes a part of the keys for some columns: 16
// of these have a group of warps, which share out the keys of a stage for the scores, and the values' dimensions for what
// those add up. Keys and values of the next stages are loaded meanwhile.

static constexpr int   FATTN_FEW_QUERIES = 32;
static constexpr float FATTN_FEW_LOG2E   = 1.44269504f;

// Small parts where there are few keys to be shared, large ones where each costs as much to add up as to compute.
static constexpr __host__ __device__ int fattn_few_part_begin(const int part) {
    return part < 16 ? 64*part : part < 44 ? 1024 + 256*(part - 16) : 8192 + 512*(part - 44);
}

static constexpr __host__ __device__ int fattn_few_n_parts(const int n_kv) {
    return n_kv <= 1024 ? (n_kv + 63)/64 : n_kv <= 8192 ? 16 + (n_kv - 1024 + 255)/256 : 44 + (n_kv - 8192 + 511)/512;
}

// type: of keys and values; D: of a head; keys of a stage; how many stages' keys or values lie in shared memory at once;
// groups of 16 columns, and warps of each; blocks of a multiprocessor.
template <ggml_type type_, int D_, int n_keys_, int n_ring_, int n_groups_, int n_warps_, int n_blocks_>
struct fattn_few_form {
    static constexpr bool q8_0    = type_ == GGML_TYPE_Q8_0; // made F16 in shared memory
    static constexpr int D        = D_;
    static constexpr int n_keys   = n_keys_;
    static constexpr int n_ring   = n_ring_;
    static constexpr int n_groups = n_groups_;
    static constexpr int n_warps  = n_warps_;
    static constexpr int n_blocks = n_blocks_;

    static constexpr int n_cols    = 16*n_groups;
    static constexpr int n_threads = 32*n_groups*n_warps;

    // Rows in shared memory, in half2: 16 bytes more than they hold, so that eight of them lie in different banks.
    static constexpr int row        = D/2 + 4;
    static constexpr int row_scores = n_keys/2 + 4;

    static constexpr int row_bytes   = q8_0 ? D/QK8_0*sizeof(block_q8_0) : D*sizeof(half); // of keys or values
    static constexpr int copy_bytes  = row_bytes % 16 == 0 ? 16 : 8;                       // at a time
    static constexpr int stage_bytes = n_keys*(q8_0 ? row_bytes : row*(int) sizeof(half2));

    static constexpr size_t shared = n_ring*stage_bytes + ((q8_0 ? n_keys*row : 0) + n_cols*row + n_cols*row_scores)*sizeof(half2) +
        2*n_warps*n_cols*sizeof(float);
    static_assert(row_bytes % copy_bytes == 0 && stage_bytes % 16 == 0, "aligned");
};

struct fattn_few_params {
    const char * Q; // F32
    const char * K; // F16, or Q8_0 as the form says
    const char * V;
    const char * mask; // F16

    size_t nb01, nb02, nb03;
    size_t nb11, nb12, nb13;
    size_t nb21, nb22, nb23;
    size_t nb31, nb33;

    int n_queries;
    int n_group;    // heads that share keys
    int n_head_kv;
    int n_kv;
    int n_parts;
    int n_col_tiles;
    int n_seq;
    int n_seq_mask;

    float scale;    // by log2(e) where there is no cap
    float cap;      // by log2(e); 0: none
};

// Of each sequence, head of the keys, part and column: D sums of values by 2^(score - largest score), in a row; and the
// largest score, to the base 2, with the sum of the weights.
struct fattn_few_partial {
    float  * sums;
    float2 * meta;
};

// Waits until at most n of the groups of copies that this thread has begun are left.
template <int n>
static __device__ __forceinline__ void fattn_few_wait() {
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory");
#else
    NO_DEVICE_CODE;
#endif // CP_ASYNC_AVAILABLE
}

static __device__ __forceinline__ void fattn_few_commit() {
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("cp.async.commit_group;" : : : "memory");
#else
    NO_DEVICE_CODE;
#endif // CP_ASYNC_AVAILABLE
}

// A tile of 16 rows of 16 values from shared memory. As the left side of a product its four registers follow each other,
// as the right side the two of each half do. `address` has the lane's part in it, so that those of other tiles are a
// constant away.
enum fattn_few_side { FATTN_FEW_LEFT, FATTN_FEW_RIGHT, FATTN_FEW_RIGHT_TRANSPOSED };

template <fattn_few_side side>
static __device__ __forceinline__ void fattn_few_read(tile<16, 8, half2> & t, const unsigned address) {
#ifdef TURING_MMA_AVAILABLE
    unsigned * x = (unsigned *) t.x;
    if constexpr (side == FATTN_FEW_LEFT) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address));
    } else if constexpr (side == FATTN_FEW_RIGHT) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(x[0]), "=r"(x[2]), "=r"(x[1]), "=r"(x[3]) : "r"(address));
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(x[0]), "=r"(x[2]), "=r"(x[1]), "=r"(x[3]) : "r"(address));
    }
#else
    GGML_UNUSED_VARS(t, address);
    NO_DEVICE_CODE;
#endif // TURING_MMA_AVAILABLE
}

// Where a lane begins to read, in bytes; rows have `row` half2.
template <fattn_few_side side>
static __device__ __forceinline__ unsigned fattn_few_lane(const int row) {
    const int lane = threadIdx.x;
    return side == FATTN_FEW_RIGHT ? ((lane % 8 + lane/16*8)*row + lane/8 % 2*4)*sizeof(half2) : (lane % 16*row + lane/16*4)*sizeof(half2);
}

template <int bytes>
static __device__ __forceinline__ void fattn_few_copy(char * to, const char * from) {
    const unsigned at = ggml_cuda_cvta_generic_to_shared(to);
    if constexpr (bytes == 16) {
        cp_async_cg_16<128>(at, from);
        return;
    }
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" : : "r"(at), "l"(from) : "memory");
#else
    GGML_UNUSED_VARS(at, from);
    NO_DEVICE_CODE;
#endif // CP_ASYNC_AVAILABLE
}

// Rows of a stage in Q8_0 as F16, with the bits of ggml_get_to_fp16_cuda. A thread takes 8 values at a time.
template <typename form>
static __device__ __forceinline__ void fattn_few_dequantize(half2 * to, const char * from) {
    constexpr int per_row = form::D/8; // threads
    static_assert(form::n_threads % per_row == 0 && form::n_keys % (form::n_threads/per_row) == 0, "whole rows");

    const int tid   = threadIdx.y*WARP_SIZE + threadIdx.x;
    const int i_row = tid % per_row;
    const int block = i_row/4;
    const int at    = block*(int) sizeof(block_q8_0) + (int) offsetof(block_q8_0, qs) + i_row % 4*8; // a multiple of 4, or 2 more
#pragma unroll
    for (int i = 0; i < form::n_keys; i += form::n_threads/per_row) {
        const int        key = i + tid/per_row;
        const char     * x   = from + key*form::row_bytes;
        const uint32_t * w   = (const uint32_t *) (x + at/4*4);
        const half2      d   = __half2half2(*(const half *) (x + block*sizeof(block_q8_0)));

        // The values of every other block begin in the middle of a word. Plus 128 they are the low bits of 1024 and more.
        const bool     inside = block % 2 == 0;
        const uint32_t q[2]   = {
            (inside ? __byte_perm(w[0], w[1], 0x5432) : w[0]) ^ 0x80808080,
            (inside ? __byte_perm(w[1], w[2], 0x5432) : w[1]) ^ 0x80808080,
        };
        const half2 zero = __float2half2_rn(1024.0f + 128.0f);
        half2 v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const uint32_t two = __byte_perm(q[j/2], 0x64646464, j % 2 == 0 ? 0x4140 : 0x4342);
            v[j] = __hmul2(__hsub2(*(const half2 *) &two, zero), d);
        }
        *(int4 *) (to + key*form::row + 4*i_row) = *(const int4 *) v;
    }
}

// Waits for the other warps of a group.
template <int n_threads>
static __device__ __forceinline__ void fattn_few_meet(const int group) {
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("bar.sync %0, %1;" : : "r"(group + 1), "n"(n_threads) : "memory");
#else
    GGML_UNUSED(group);
    NO_DEVICE_CODE;
#endif // CP_ASYNC_AVAILABLE
}

template <typename form>
__launch_bounds__(form::n_threads, form::n_blocks)
static __global__ void fattn_few(const fattn_few_params p, const fattn_few_partial out) {
#ifdef AMPERE_MMA_AVAILABLE
    using tile_ab = tile<16,  8, half2>;
    using tile_c  = tile<16, 16, float>; // columns by keys, columns by D

    constexpr int D       = form::D;
    constexpr int n_keys  = form::n_keys;
    constexpr int n_warps = form::n_warps;
    constexpr int row     = form::row;
    constexpr int n_share = n_keys/n_warps;    // keys whose scores a warp computes
    constexpr int n_s     = n_share/16;
    constexpr int n_v     = D/n_warps/16;      // tiles of D that a warp adds up
    constexpr int chunks  = form::row_bytes/form::copy_bytes; // copied for a row
    static_assert(n_share % 16 == 0 && D/n_warps % 16 == 0, "whole tiles");

    extern __shared__ __align__(16) char fattn_few_shared[];
    char  * const ring    = fattn_few_shared;                                        // [n_ring] stages
    half2 * const as_f16  = (half2 *) (ring + form::n_ring*form::stage_bytes);       // [n_keys][row] of a stage in Q8_0
    half2 * const queries = as_f16  + (form::q8_0 ? n_keys*row : 0);                 // [n_cols][row]
    half2 * const weights = queries + form::n_cols*row;                              // [n_cols][row_scores]
    float * const maxima  = (float *) (weights + form::n_cols*form::row_scores);     // [n_warps][n_cols]
    float * const totals  = maxima + n_warps*form::n_cols;                           // [n_warps][n_cols]

    ggml_cuda_pdl_lc();

    const int group = threadIdx.y % form::n_groups;
    const int warp  = threadIdx.y / form::n_groups; // of the group
    const int lane  = threadIdx.x;
    const int tid   = threadIdx.y*32 + lane;

    // The long parts come last and begin first, and with each the same keys' of other columns.
    const int n_pieces = p.n_col_tiles*p.n_head_kv*p.n_seq;
    const int part     = p.n_parts - 1 - blockIdx.x / n_pieces;
    const int piece    = blockIdx.x % n_pieces;
    const int head     = piece / p.n_col_tiles % p.n_head_kv;
    const int sequence = piece / p.n_col_tiles / p.n_head_kv;
    const int n_cols   = p.n_queries*p.n_group;
    const int col_0    = piece % p.n_col_tiles*form::n_cols; // of the block
    const int key_0    = fattn_few_part_begin(part);
    const int n_stages = (min(fattn_few_part_begin(part + 1), p.n_kv) - key_0)/n_keys;

    const char * K = p.K + head*p.nb12 + sequence*p.nb13;
    const char * V = p.V + head*p.nb22 + sequence*p.nb23;

    // Even: keys of a stage; odd: values. A group of copies, empty where there are no more.
    const auto load = [&](const int i_load) {
        if (i_load < 2*n_stages) {
            constexpr int to_stride = form::stage_bytes/n_keys;
            char *       to     = ring + i_load % form::n_ring*form::stage_bytes;
            const size_t stride = i_load % 2 ? p.nb21 : p.nb11;
            const char * from   = (i_load % 2 ? V : K) + (key_0 + i_load/2*n_keys)*stride;
#pragma unroll
            for (int i = 0; i < n_keys*chunks; i += form::n_threads) {
                const int key   = (i + tid) / chunks;
                const int chunk = (i + tid) % chunks;
                if (i + form::n_threads <= n_keys*chunks || i + tid < n_keys*chunks) {
                    fattn_few_copy<form::copy_bytes>(to + key*to_stride + chunk*form::copy_bytes, from + key*stride + chunk*form::copy_bytes);
                }
            }
        }
        fattn_few_commit();
    };

    ggml_cuda_pdl_sync();
    for (int i = 0; i < form::n_ring - 1; ++i) {
        load(i);
    }

#pragma unroll
    for (int i = 0; i < form::n_cols; i += form::n_threads/32) {
        const int    c   = i + threadIdx.y;
        const int    col = col_0 + c;
        const char * q   = p.Q + col / p.n_group*p.nb01 + (head*p.n_group + col % p.n_group)*p.nb02 + sequence*p.nb03;
#pragma unroll
        for (int d = 0; d < D/2; d += 32) {
            const float2 x = col < n_cols ? ((const float2 *) q)[d + lane] : make_float2(0.0f, 0.0f);
            queries[c*row + d + lane] = make_half2(x.x, x.y);
        }
    }

    // A thread has two columns of its group's.
    const bool active = col_0 + 16*group < n_cols;
    int cols[2];
    const half * mask[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        cols[c] = 16*group + lane/4 + 8*c;
        const int query = col_0 + cols[c] < n_cols ? (col_0 + cols[c]) / p.n_group : 0;
        mask[c] = (const half *) (p.mask + query*p.nb31 + sequence % p.n_seq_mask*p.nb33) + key_0 + warp*n_share + 2*(lane % 4);
    }

    half2 masked[n_s][4]; // of a stage, as the values of a tile lie
    const auto read_mask = [&](const int stage) {
#pragma unroll
        for (int s = 0; s < n_s; ++s) {
#pragma unroll
            for (int l = 0; l < 4; ++l) {
                masked[s][l] = *(const half2 *) (mask[l % 2] + stage*n_keys + s*16 + l/2*8);
            }
        }
    };
    read_mask(0);

    // The keys or values of a stage are waited for, and made F16. Returns where they begin in shared memory.
    const auto arrive = [&](const int i_load) -> unsigned {
        fattn_few_wait<form::n_ring - 2>();
        __syncthreads();
        load(i_load + form::n_ring - 1);

        char * const loaded = ring + i_load % form::n_ring*form::stage_bytes;
        if constexpr (form::q8_0) {
            fattn_few_dequantize<form>(as_f16, loaded);
            __syncthreads();
            return ggml_cuda_cvta_generic_to_shared(as_f16);
        }
        return ggml_cuda_cvta_generic_to_shared(loaded);
    };

    const unsigned at_keys    = fattn_few_lane<FATTN_FEW_RIGHT>(row);
    const unsigned at_values  = fattn_few_lane<FATTN_FEW_RIGHT_TRANSPOSED>(row);
    const unsigned at_queries = ggml_cuda_cvta_generic_to_shared(queries + 16*group*row) + fattn_few_lane<FATTN_FEW_LEFT>(row);
    const unsigned at_weights = ggml_cuda_cvta_generic_to_shared(weights + 16*group*form::row_scores) + fattn_few_lane<FATTN_FEW_LEFT>(form::row_scores);

    tile_c sums[n_v];
    float  largest[2] = { -FLT_MAX/2.0f, -FLT_MAX/2.0f };
    float  total[2]   = { 0.0f, 0.0f }; // of the weights that this thread has computed

    for (int stage = 0; stage < n_stages; ++stage) {
        const unsigned keys = arrive(2*stage) + at_keys + warp*n_share*row*sizeof(half2);
        if (active) {
            // two sums of each, so that one need not wait for the other
            tile_c scores[n_s][2];
#pragma unroll
            for (int i = 0; i < D/16; ++i) {
                tile_ab q;
                fattn_few_read<FATTN_FEW_LEFT>(q, at_queries + i*32);
#pragma unroll
                for (int s = 0; s < n_s; ++s) {
                    tile_ab k;
                    fattn_few_read<FATTN_FEW_RIGHT>(k, keys + s*16*row*sizeof(half2) + i*32);
                    mma(scores[s][i % 2], q, k);
                }
            }

            float most[2] = { largest[0], largest[1] };
#pragma unroll
            for (int s = 0; s < n_s; ++s) {
#pragma unroll
                for (int l = 0; l < tile_c::ne; ++l) {
                    scores[s][0].x[l] = p.scale*(scores[s][0].x[l] + scores[s][1].x[l]);
                }
            }
            if (p.cap != 0.0f) {
#pragma unroll
                for (int s = 0; s < n_s; ++s) {
#pragma unroll
                    for (int l = 0; l < tile_c::ne; ++l) {
                        scores[s][0].x[l] = p.cap*tanhf(scores[s][0].x[l]);
                    }
                }
            }
#pragma unroll
            for (int s = 0; s < n_s; ++s) {
#pragma unroll
                for (int l = 0; l < tile_c::ne; ++l) {
                    const half2 m = masked[s][l/2];
                    scores[s][0].x[l] += FATTN_FEW_LOG2E*(l % 2 ? __high2float(m) : __low2float(m));
                    most[l/2 % 2] = fmaxf(most[l/2 % 2], scores[s][0].x[l]);
                }
            }
            if (stage + 1 < n_stages) {
                read_mask(stage + 1);
            }
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                most[c] = fmaxf(most[c], __shfl_xor_sync(0xFFFFFFFF, most[c], 1));
                most[c] = fmaxf(most[c], __shfl_xor_sync(0xFFFFFFFF, most[c], 2));
                if (lane % 4 == 0) {
                    maxima[warp*form::n_cols + cols[c]] = most[c];
                }
            }
            fattn_few_meet<32*n_warps>(group);

            float again[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
#pragma unroll
                for (int w = 0; w < n_warps; ++w) {
                    most[c] = fmaxf(most[c], maxima[w*form::n_cols + cols[c]]);
                }
                again[c]   = exp2f(largest[c] - most[c]);
                largest[c] = most[c];
                total[c]  *= again[c];
            }
#pragma unroll
            for (int s = 0; s < n_s; ++s) {
#pragma unroll
                for (int l = 0; l < tile_c::ne; l += 2) {
                    const int   c = l/2 % 2;
                    const float x = exp2f(scores[s][0].x[l]     - largest[c]);
                    const float y = exp2f(scores[s][0].x[l + 1] - largest[c]);
                    total[c] += x + y;
                    weights[cols[c]*form::row_scores + (warp*n_share + s*16)/2 + l/4*4 + lane % 4] = make_half2(x, y);
                }
            }
#pragma unroll
            for (int i = 0; i < n_v; ++i) {
#pragma unroll
                for (int l = 0; l < tile_c::ne; ++l) {
                    sums[i].x[l] *= again[l/2 % 2];
                }
            }
        }
        const unsigned values = arrive(2*stage + 1) + at_values + warp*n_v*32;
        if (!active) {
            continue;
        }
#pragma unroll
        for (int i = 0; i < n_keys/16; ++i) {
            tile_ab w;
            fattn_few_read<FATTN_FEW_LEFT>(w, at_weights + i*32);
#pragma unroll
            for (int j = 0; j < n_v; ++j) {
                tile_ab v;
                fattn_few_read<FATTN_FEW_RIGHT_TRANSPOSED>(v, values + i*16*row*sizeof(half2) + j*32);
                mma(sums[j], w, v);
            }
        }
    }
    if (!active) {
        return;
    }

#pragma unroll
    for (int c = 0; c < 2; ++c) {
        total[c] += __shfl_xor_sync(0xFFFFFFFF, total[c], 1);
        total[c] += __shfl_xor_sync(0xFFFFFFFF, total[c], 2);
        if (lane % 4 == 0) {
            totals[warp*form::n_cols + cols[c]] = total[c];
        }
    }
    fattn_few_meet<32*n_warps>(group);

    const int64_t first = (int64_t(sequence*p.n_head_kv + head)*p.n_parts + part)*n_cols + col_0;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        if (col_0 + cols[c] >= n_cols) {
            continue;
        }
        if (warp == 0 && lane % 4 == 0) {
            float all = 0.0f;
#pragma unroll
            for (int w = 0; w < n_warps; ++w) {
                all += totals[w*form::n_cols + cols[c]];
            }
            out.meta[first + cols[c]] = make_float2(largest[c], all);
        }
        float * to = out.sums + (first + cols[c])*D + warp*n_v*16 + 2*(lane % 4);
#pragma unroll
        for (int i = 0; i < n_v; ++i) {
#pragma unroll
            for (int l = 0; l < 2; ++l) {
                *(float2 *) (to + i*16 + l*8) = make_float2(sums[i].x[4*l + 2*c], sums[i].x[4*l + 2*c + 1]);
            }
        }
    }
#else
    GGML_UNUSED_VARS(p, out);
    NO_DEVICE_CODE;
#endif // AMPERE_MMA_AVAILABLE
}

// The parts of a column, in their order. A block for a column, a thread for each of its D values.
template <int D>
__launch_bounds__(D, 1)
static __global__ void fattn_few_add(
        const fattn_few_partial parts, const float * sinks, float * dst,
        const int n_parts, const int n_queries, const int n_group, const int n_head_kv) {
    extern __shared__ float2 fattn_few_meta[];
    ggml_cuda_pdl_lc();

    const int n_cols   = n_queries*n_group;
    const int col      = blockIdx.x;
    const int head     = blockIdx.y;
    const int sequence = blockIdx.z;

    const int64_t first = int64_t(sequence*n_head_kv + head)*n_parts*n_cols + col;

    ggml_cuda_pdl_sync();
    for (int i = threadIdx.x; i < n_parts; i += D) {
        fattn_few_meta[i] = parts.meta[first + int64_t(i)*n_cols];
    }
    const int   i_head = head*n_group + col % n_group;
    const float sink   = sinks ? FATTN_FEW_LOG2E*sinks[i_head] : -FLT_MAX/2.0f;
    __syncthreads();

    float most = sink;
#pragma unroll 8
    for (int i = 0; i < n_parts; ++i) {
        most = fmaxf(most, fattn_few_meta[i].x);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n_parts; i += D) {
        const float scale = exp2f(fattn_few_meta[i].x - most);
        fattn_few_meta[i] = make_float2(scale, scale*fattn_few_meta[i].y);
    }
    __syncthreads();

    float sum = 0.0f, weight = sinks ? exp2f(sink - most) : 0.0f;
#pragma unroll 16
    for (int i = 0; i < n_parts; ++i) {
        const float2 meta = fattn_few_meta[i];
        sum    += meta.x*parts.sums[(first + int64_t(i)*n_cols)*D + threadIdx.x];
        weight += meta.y;
    }
    dst[((int64_t(sequence)*n_queries + col / n_group)*n_head_kv*n_group + i_head)*D + threadIdx.x] = sum/weight;
}

// Where keys or values lie.
struct fattn_few_rows {
    const char * data;
    size_t nb1, nb2, nb3;
};

static fattn_few_rows fattn_few_as_it_lies(const ggml_tensor * t) {
    return { (const char *) t->data, t->nb[1], t->nb[2], t->nb[3] };
}

// Keys or values as F16: where they are, or in a copy.
static fattn_few_rows fattn_few_as_f16(const ggml_tensor * t, const uintptr_t copy, cudaStream_t stream) {
    if (t->type == GGML_TYPE_F16) {
        return fattn_few_as_it_lies(t);
    }
    const size_t size = ggml_type_size(t->type);
    GGML_ASSERT(copy != 0);
    if (ggml_is_contiguously_allocated(t)) {
        ggml_get_to_fp16_cuda(t->type)(t->data, (half *) copy, ggml_nelements(t), stream);
        const auto stride = [&](const int i) { return t->nb[i]/size*ggml_blck_size(t->type)*sizeof(half); };
        return { (const char *) copy, stride(1), stride(2), stride(3) };
    }
    ggml_get_to_fp16_nc_cuda(t->type)(t->data, (half *) copy, t->ne[0], t->ne[1], t->ne[2], t->ne[3],
        t->nb[1]/size, t->nb[2]/size, t->nb[3]/size, stream);
    const size_t nb1 = t->ne[0]*sizeof(half);
    return { (const char *) copy, nb1, t->ne[1]*nb1, t->ne[2]*t->ne[1]*nb1 };
}

template <typename form>
static void fattn_few_case(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    static_assert(form::shared <= 99*1024, "for any card that has the instructions");
    constexpr int D = form::D;

    const ggml_tensor * Q     = dst->src[0];
    const ggml_tensor * K     = dst->src[1];
    const ggml_tensor * V     = dst->src[2];
    const ggml_tensor * mask  = dst->src[3];
    const ggml_tensor * sinks = dst->src[4];

    GGML_ASSERT(Q->type == GGML_TYPE_F32 && dst->type == GGML_TYPE_F32 && mask->type == GGML_TYPE_F16);
    for (const ggml_tensor * t : { Q, K, V }) {
        GGML_ASSERT(t->nb[0] == ggml_element_size(t));
    }

    fattn_few_rows k = fattn_few_as_it_lies(K);
    fattn_few_rows v = fattn_few_as_it_lies(V);
    if constexpr (!form::q8_0) {
        const ggml_cuda_flash_attn_ext_f16_extra_data extra = ggml_cuda_flash_attn_ext_get_f16_extra_data(dst, true, true);
        k = fattn_few_as_f16(K, extra.K, ctx.stream());
        v = extra.V != 0 && extra.V == extra.K ? k : fattn_few_as_f16(V, extra.V, ctx.stream());
    }

    fattn_few_params p = {};
    p.Q    = (const char *) Q->data;
    p.K    = k.data;
    p.V    = v.data;
    p.mask = (const char *) mask->data;
    p.nb01 = Q->nb[1];    p.nb02 = Q->nb[2];    p.nb03 = Q->nb[3];
    p.nb11 = k.nb1;       p.nb12 = k.nb2;       p.nb13 = k.nb3;
    p.nb21 = v.nb1;       p.nb22 = v.nb2;       p.nb23 = v.nb3;
    p.nb31 = mask->nb[1]; p.nb33 = mask->nb[3];

    p.n_queries   = Q->ne[1];
    p.n_group     = Q->ne[2]/K->ne[2];
    p.n_head_kv   = K->ne[2];
    p.n_kv        = K->ne[1];
    p.n_parts     = fattn_few_n_parts(p.n_kv);
    p.n_col_tiles = (p.n_queries*p.n_group + form::n_cols - 1)/form::n_cols;
    p.n_seq       = Q->ne[3];
    p.n_seq_mask  = mask->ne[3];

    const float cap = ggml_get_op_params_f32(dst, 2);
    p.scale = ggml_get_op_params_f32(dst, 0)*(cap != 0.0f ? 1.0f/cap : FATTN_FEW_LOG2E);
    p.cap   = cap*FATTN_FEW_LOG2E;

    const int64_t n_partial = (int64_t) p.n_parts*p.n_queries*Q->ne[2]*Q->ne[3];
    ggml_cuda_pool_alloc<float>  sums(ctx.pool(), n_partial*D);
    ggml_cuda_pool_alloc<float2> meta(ctx.pool(), n_partial);
    const fattn_few_partial parts = { sums.ptr, meta.ptr };

    const auto kernel = fattn_few<form>;
    CUDA_SET_SHARED_MEMORY_LIMIT(kernel, form::shared);
    ggml_cuda_kernel_launch(kernel, ggml_cuda_kernel_launch_params(dim3(p.n_parts*p.n_col_tiles*p.n_head_kv*p.n_seq, 1, 1),
        dim3(32, form::n_groups*form::n_warps, 1), form::shared, ctx.stream()), p, parts);
    CUDA_CHECK(cudaGetLastError());

    ggml_cuda_kernel_launch(fattn_few_add<D>,
        ggml_cuda_kernel_launch_params(dim3(p.n_queries*p.n_group, p.n_head_kv, p.n_seq), dim3(D, 1, 1), p.n_parts*sizeof(float2), ctx.stream()),
        parts, sinks ? (const float *) sinks->data : nullptr, (float *) dst->data, p.n_parts, p.n_queries, p.n_group, p.n_head_kv);
    CUDA_CHECK(cudaGetLastError());
}

bool ggml_cuda_should_use_fattn_few(const ggml_tensor * dst, const int device) {
    const ggml_tensor * Q    = dst->src[0];
    const ggml_tensor * K    = dst->src[1];
    const ggml_tensor * V    = dst->src[2];
    const ggml_tensor * mask = dst->src[3];

    const int   cc       = ggml_cuda_info().devices[device].cc;
    const float max_bias = ggml_get_op_params_f32(dst, 1);
    const int   n_sparse = ggml_get_op_params_i32(dst, 4);

    if (!GGML_CUDA_CC_IS_NVIDIA(cc) || !ampere_mma_available(cc) || Q->ne[1] > FATTN_FEW_QUERIES || Q->ne[2] == K->ne[2] ||
            mask == nullptr || max_bias != 0.0f || n_sparse != 0 || K->ne[1] % 256 != 0 || fattn_few_n_parts(K->ne[1])*sizeof(float2) > 48*1024 ||
            K->ne[0] != V->ne[0] || (K->ne[0] != 64 && K->ne[0] != 128 && K->ne[0] != 256)) {
        return false;
    }
    for (const ggml_tensor * t : { Q, K, V, mask }) {
        for (int i = 1; i < GGML_MAX_DIMS; ++i) {
            if (!ggml_is_quantized(t->type) && t->nb[i] % 16 != 0) {
                return false;
            }
        }
    }
    return true;
}

// Whether keys and values can be read in Q8_0 as they lie.
template <typename form>
static bool fattn_few_reads_q8_0(const ggml_tensor * dst) {
    for (const ggml_tensor * t : { dst->src[1], dst->src[2] }) {
        const bool aligned = t->nb[1] % form::copy_bytes == 0 && t->nb[2] % form::copy_bytes == 0 && t->nb[3] % form::copy_bytes == 0 &&
            (uintptr_t) t->data % form::copy_bytes == 0;
        if (t->type != GGML_TYPE_Q8_0 || !aligned) {
            return false;
        }
    }
    return true;
}

template <int D, int n_keys, int n_ring, int n_groups, int n_warps, int n_blocks>
static void fattn_few_either(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    using q8_0 = fattn_few_form<GGML_TYPE_Q8_0, D, n_keys, n_ring, n_groups, n_warps, n_blocks>;
    using f16  = fattn_few_form<GGML_TYPE_F16,  D, n_keys, n_ring, n_groups, n_warps, n_blocks>;
    fattn_few_reads_q8_0<q8_0>(dst) ? fattn_few_case<q8_0>(ctx, dst) : fattn_few_case<f16>(ctx, dst);
}

void ggml_cuda_flash_attn_ext_few(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    switch (dst->src[0]->ne[0]) {
        case  64: fattn_few_case<fattn_few_form<GGML_TYPE_F16, 64, 64, 4, 4, 2, 2>>(ctx, dst); break;
        case 128: fattn_few_either<128, 64, 4, 4, 2, 2>(ctx, dst); break;
        case 256: fattn_few_either<256, 32, 4, 2, 2, 1>(ctx, dst); break; // two lie beside each other on an H200
        default: GGML_ABORT("a head size that has no kernel");
    }
}
