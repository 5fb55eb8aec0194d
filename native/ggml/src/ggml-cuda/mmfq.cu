#include "mmfq.cuh"
#include "convert.cuh"
#include "cp-async.cuh"
#include "unary.cuh"

#include <atomic>
#include <cstdint>
#include <cstdlib>

// A block of threads takes tiles of 16 rows of the weights, one after the other. The row is cut into
// chunks, and each warp of the block has its chunks of every tile: it copies them into a ring of its own
// in shared memory, several ahead and across tiles, and multiplies them on the tensor cores. Where it has
// one chunk and registers enough, its part of the activation stays in them. At the end of a tile the partial
// sums of the warps are added, always in the order of the chunks.
//
// A long row has more warps, with fewer registers each. A longer one is cut into as many slices as a cluster
// has blocks, so that few rows occupy the device too: each block of it sums up its slice, and one of them, in
// turns, adds the slices in their order.
//
// Where a block may take 99 KiB of shared memory only (compute capability 8.6, 8.9 and 12.x), rings have fewer stages where
// warps would not fit, and there is one place for the partial sums of a tile, or of both products of a GLU.
//
// How a row is cut depends on its length and type and on the device, so a result depends neither on
// the number of columns nor on the place of its row.
//
// The activation comes quantized to 8 bits in blocks of 32, or as floats of 16 bits like the weights, in
// the order in which the lanes of a warp need it: see mmfq_src1_int8 and mmfq_src1_floats. Columns
// beyond 16 are another launch, which finds them behind the first 16.

static constexpr int MMFQ_ROWS   = 16; // of a tile
static constexpr int MMFQ_SLICES =  8; // at most
static constexpr int MMFQ_COLS   = 16; // of a launch

// 32 values of each column. Lane 4*g + t multiplies values 4*t ... 4*t + 3 and 16 + 4*t ... 16 + 4*t + 3
// of the columns g and g + 8, and gets sums of the columns 2*t, 2*t + 1, 2*t + 8 and 2*t + 9.
template <int NT> // tiles of 8 columns
struct alignas(16) mmfq_src1_int8 {
    int   qs[32][NT][2];
    float d[4][NT][2];
    float sum[4][NT][2]; // of the 32 values, for types with a minimum

    // Eight neighbouring threads have the 32 values of a column, thread j the values 4*j ... 4*j + 3.
    static __device__ __forceinline__ void store(mmfq_src1_int8 & to, const int j, const int col, const float4 v) {
        const float amax = warp_reduce_max<8>(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
        const float d    = amax/127.0f;
        const float id   = amax == 0.0f ? 0.0f : 127.0f/amax;
        const int   q0   = __float2int_rn(v.x*id);
        const int   q1   = __float2int_rn(v.y*id);
        const int   q2   = __float2int_rn(v.z*id);
        const int   q3   = __float2int_rn(v.w*id);
        const float sum  = warp_reduce_sum<8>((float) (q0 + q1 + q2 + q3)); // as floats: integers are added over a whole warp

        to.qs[4*(col % 8) + j % 4][col / 8][j / 4] = (q0 & 0xFF) | ((q1 & 0xFF) << 8) | ((q2 & 0xFF) << 16) | ((uint32_t) q3 << 24);
        if (j == 0) {
            to.d  [(col % 8)/2][col / 8][col % 2] = d;
            to.sum[(col % 8)/2][col / 8][col % 2] = d*sum;
        }
    }
};

// The same as pairs of floats: the lane multiplies values 8*t ... 8*t + 7.
template <typename pair, int NT>
struct alignas(16) mmfq_src1_floats {
    pair v[32][NT][4];

    static __device__ __forceinline__ void store(mmfq_src1_floats & to, const int j, const int col, const float4 v) {
        pair * at = &to.v[4*(col % 8) + j/2][col / 8][2*(j % 2)];
        at[0] = ggml_cuda_cast<pair>(make_float2(v.x, v.y));
        at[1] = ggml_cuda_cast<pair>(make_float2(v.z, v.w));
    }
};

struct mmfq_matrix {
    const char * x;
    float *      dst;
    int64_t      stride_dst;
    int          tile_end; // of the launch, not of the matrix
};

struct mmfq_args {
    mmfq_matrix   matrix[MMFQ_MAX_MATRICES];
    int           n_matrices;
    int           n_cols;
    int           n_chunks; // of a slice of a row
    int           n_slices; // blocks of a cluster
    int           n_groups; // tiles that a block has at a time: its warps are n_groups times those of a tile
    int           n_tiles;
    int64_t       row_size; // bytes
    const void *  y;
    const float * add;
    int64_t       stride_add;
    bool          x_is_constant; // not written by an earlier kernel
};

static __device__ __forceinline__ void mmfq_mma_k32(int (&c)[4], const int (&a)[4], const int b0, const int b1) {
#ifdef AMPERE_MMA_AVAILABLE
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    GGML_UNUSED_VARS(c, a, b0, b1);
    NO_DEVICE_CODE;
#endif // AMPERE_MMA_AVAILABLE
}

static __device__ __forceinline__ void mmfq_mma_k16(int (&c)[4], const int a0, const int a1, const int b0) {
#ifdef AMPERE_MMA_AVAILABLE
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b0));
#else
    GGML_UNUSED_VARS(c, a0, a1, b0);
    NO_DEVICE_CODE;
#endif // AMPERE_MMA_AVAILABLE
}

template <typename pair>
static __device__ __forceinline__ void mmfq_mma_k16(float (&c)[4], const int (&a)[4], const int b0, const int b1) {
#ifdef AMPERE_MMA_AVAILABLE
    if constexpr (std::is_same_v<pair, half2>) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
#else
    GGML_UNUSED_VARS(c, a, b0, b1);
    NO_DEVICE_CODE;
#endif // AMPERE_MMA_AVAILABLE
}

// Floats with 10 bits behind the point.
static __device__ __forceinline__ void mmfq_mma_k8(float (&c)[4], const float (&a)[4], const float b0, const float b1) {
#ifdef AMPERE_MMA_AVAILABLE
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#else
    GGML_UNUSED_VARS(c, a, b0, b1);
    NO_DEVICE_CODE;
#endif // AMPERE_MMA_AVAILABLE
}

static __device__ __forceinline__ float mmfq_tf32(const float x) {
    return __uint_as_float(__float_as_uint(x) & 0xFFFFE000);
}

static __device__ __forceinline__ void mmfq_commit() {
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif // CP_ASYNC_AVAILABLE
}

template <int N>
static __device__ __forceinline__ void mmfq_wait() {
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#endif // CP_ASYNC_AVAILABLE
}

template <int NT>
struct mmfq_sums {
    float v[NT][4] = {};

    // Sums of a block of 32: `c` times the scales of its columns.
    __device__ __forceinline__ void add(const int (&c)[NT][4], const float (&d)[NT][2]) {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                v[n][i] = fmaf((float) c[n][i], d[n][i % 2], v[n][i]);
            }
        }
    }

    // Sums of a block of 32: `c` times the scales of the two rows of a lane and of its columns.
    __device__ __forceinline__ void add(const int (&c)[NT][4], const float d0, const float d1, const float (&d)[NT][2]) {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            v[n][0] = fmaf((float) c[n][0], d0*d[n][0], v[n][0]);
            v[n][1] = fmaf((float) c[n][1], d0*d[n][1], v[n][1]);
            v[n][2] = fmaf((float) c[n][2], d1*d[n][0], v[n][2]);
            v[n][3] = fmaf((float) c[n][3], d1*d[n][1], v[n][3]);
        }
    }
};

// What a lane multiplies of 32 values of the columns.
template <int NT>
struct mmfq_columns {
    int   q[NT][2];
    float d[NT][2];
};

// The columns of a chunk, read where they are needed or, for the only chunk of a warp, once.
template <int NT, int N, bool kept>
struct mmfq_chunk_int8 {
    const mmfq_src1_int8<NT> * y;
    const int                  lane;
    int                        q[kept ? N : 1][NT][2];
    float                      sum[kept ? NT : 1][2];

    __device__ __forceinline__ mmfq_chunk_int8(const mmfq_src1_int8<NT> * y, const int lane) : y(y), lane(lane) {
        if constexpr (kept) {
#pragma unroll
            for (int b = 0; b < N; ++b) {
                ggml_cuda_memcpy_1<sizeof(q[b])>(q[b], y[b].qs[lane]);
            }
            read_sums(sum);
        }
    }

    __device__ __forceinline__ mmfq_columns<NT> columns(const int b) const {
        mmfq_columns<NT> col;
        if constexpr (kept) {
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                col.q[n][0] = q[b][n][0];
                col.q[n][1] = q[b][n][1];
            }
        } else {
            ggml_cuda_memcpy_1<sizeof(col.q)>(col.q, y[b].qs[lane]);
        }
        ggml_cuda_memcpy_1<sizeof(col.d)>(col.d, y[b].d[lane % 4]);
        return col;
    }

    // Of 256 values: the sums of the blocks t and t + 4 of column g of each tile, where the lane is 4*g + t.
    __device__ __forceinline__ void read_sums(float (&to)[NT][2]) const {
#pragma unroll
        for (int n = 0; n < NT; ++n) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                to[n][j] = y[lane % 4 + 4*j].sum[lane/8][n][lane/4 % 2];
            }
        }
    }

    __device__ __forceinline__ void sums(float (&to)[NT][2]) const {
        if constexpr (kept) {
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                to[n][0] = sum[n][0];
                to[n][1] = sum[n][1];
            }
        } else {
            read_sums(to);
        }
    }
};

template <typename pair, int NT>
struct mmfq_chunk_floats {
    const mmfq_src1_floats<pair, NT> * y;
    const int                          lane;

    __device__ __forceinline__ mmfq_chunk_floats(const mmfq_src1_floats<pair, NT> * y, const int lane) : y(y), lane(lane) {}
};

// A block takes whole rows, or whole rows with one chunk for each of many warps, or a slice of each row in a cluster, or
// whole rows with little shared memory.
enum mmfq_form { MMFQ_WHOLE, MMFQ_LONG, MMFQ_SLICED, MMFQ_SMALL };

// The warps of a block, at most, and the stages of the ring of each. With 12 warps a thread has 168 registers, with 16 it
// has 128 and with 20 it has 96.
struct mmfq_room {
    int n_warps;
    int n_stages;
};

// A type tells how many bytes of a row make a chunk, how they lie in shared memory and how to
// multiply them. `x` is where the chunk of the lane's first row begins, its other row is 8 rows on.
// ROOM: by mmfq_form. KEEPS: whether the registers hold a chunk's part of the activation.

template <ggml_type type> struct mmfq_type;

template <> struct mmfq_type<GGML_TYPE_Q8_0> {
    template <int NT> using src1 = mmfq_src1_int8<NT>;
    static constexpr int K      = 256;  // values of a chunk
    static constexpr int BYTES  = 272;  // of a chunk
    static constexpr int COPY   = 272;  // bytes copied, in units of 16
    static constexpr int STRIDE = 272;  // of the rows in shared memory, chosen against bank conflicts
    static constexpr mmfq_room ROOM[] = { { 12, 2 }, { 16, 2 }, { 20, 2 }, { 12, 2 } };
    static constexpr bool KEEPS = true;

    template <int NT, bool kept> using chunk = mmfq_chunk_int8<NT, K/32, kept>;

    // Two blocks are 17 words: the first block's values begin in the middle of a word.
    template <int NT, typename Y>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const Y & y) {
        const int t = y.lane % 4;
#pragma unroll
        for (int p = 0; p < K/64; ++p) {
            int a[2][4];
            float d[2][2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const uint32_t * w = (const uint32_t *) (x + r*8*STRIDE) + 17*p;
                a[0][r + 0] = __byte_perm(w[t + 0], w[t + 1], 0x5432);
                a[0][r + 2] = __byte_perm(w[t + 4], w[t + 5], 0x5432);
                a[1][r + 0] = w[t +  9];
                a[1][r + 2] = w[t + 13];
                d[0][r] = __half2float(__ushort_as_half(w[0] & 0xFFFF));
                d[1][r] = __half2float(__ushort_as_half(w[8] >> 16));
            }
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                const mmfq_columns<NT> col = y.columns(2*p + b);
                int c[NT][4] = {};
#pragma unroll
                for (int n = 0; n < NT; ++n) {
                    mmfq_mma_k32(c[n], a[b], col.q[n][0], col.q[n][1]);
                }
                sums.add(c, d[b][0], d[b][1], col.d);
            }
        }
    }
};

template <> struct mmfq_type<GGML_TYPE_Q6_K> {
    template <int NT> using src1 = mmfq_src1_int8<NT>;
    static constexpr int K      = 512;
    static constexpr int BYTES  = 420;
    static constexpr int COPY   = 432; // a row begins at a multiple of 4 bytes, a copy at one of 16
    static constexpr int STRIDE = 432;
    static constexpr mmfq_room ROOM[] = { { 16, 1 }, { 16, 1 }, { 12, 1 }, { 12, 1 } };
    static constexpr bool KEEPS = false;

    template <int NT, bool kept> using chunk = mmfq_chunk_int8<NT, K/32, kept>;

    // A word that may begin in the middle of one.
    static __device__ __forceinline__ uint32_t word(const char * x, const int offset, const bool odd) {
        const uint32_t * w = (const uint32_t *) (x + offset - (odd ? 2 : 0));
        return odd ? __byte_perm(w[0], w[1], 0x5432) : w[0];
    }

    template <int NT, typename Y>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const char * x8, const Y & y) {
        const int t = y.lane % 4;
#pragma unroll
        for (int k = 0; k < K/QK_K; ++k) {
            const bool   odd      = k % 2 != 0; // 210 bytes on
            const char * block[2] = { x + k*sizeof(block_q6_K), x8 + k*sizeof(block_q6_K) };
            const float  d[2]     = {
                // the values are multiplied by 4 below
                0.25f*__half2float(*(const half *) (block[0] + offsetof(block_q6_K, d))),
                0.25f*__half2float(*(const half *) (block[1] + offsetof(block_q6_K, d))),
            };
            mmfq_sums<NT> scaled;
#pragma unroll
            for (int h = 0; h < 2; ++h) { // 128 values each
                uint32_t ql[2][2][2]; // row, first or second 32 bytes, first or second half of them
                uint32_t qh[2][2];
                uint32_t sc[2][2];    // 8 scales of 16 values
#pragma unroll
                for (int r = 0; r < 2; ++r) {
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        ql[r][0][j] = word(block[r], 64*h +      16*j + 4*t, odd);
                        ql[r][1][j] = word(block[r], 64*h + 32 + 16*j + 4*t, odd);
                        qh[r][j]    = word(block[r], offsetof(block_q6_K, qh)     + 32*h + 16*j + 4*t, odd) ^ 0xAAAAAAAA;
                        sc[r][j]    = word(block[r], offsetof(block_q6_K, scales) +  8*h +  4*j,       odd);
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) { // 32 values each
                    const mmfq_columns<NT> col = y.columns(k*(QK_K/32) + 4*h + i);
                    int c[NT][4] = {};
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        int a[2];
                        int s[2];
#pragma unroll
                        for (int r = 0; r < 2; ++r) {
                            // 4*(q - 32): two bits further left, the highest of them, turned above, the sign
                            const uint32_t lo = i < 2 ? ql[r][i % 2][j] << 2 : ql[r][i % 2][j] >> 2;
                            const uint32_t hi = i < 3 ? qh[r][j] << (6 - 2*i) : qh[r][j];
                            a[r] = (lo & 0x3C3C3C3C) | (hi & 0xC0C0C0C0);
                            s[r] = (int8_t) (sc[r][i/2] >> 8*(2*(i % 2) + j));
                        }
#pragma unroll
                        for (int n = 0; n < NT; ++n) {
                            int part[4] = {};
                            mmfq_mma_k16(part, a[0], a[1], col.q[n][j]);
                            c[n][0] += s[0]*part[0];
                            c[n][1] += s[0]*part[1];
                            c[n][2] += s[1]*part[2];
                            c[n][3] += s[1]*part[3];
                        }
                    }
                    scaled.add(c, col.d);
                }
            }
#pragma unroll
            for (int n = 0; n < NT; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    sums.v[n][i] = fmaf(d[i/2], scaled.v[n][i], sums.v[n][i]);
                }
            }
        }
    }
};

// Q4_K and Q5_K: 8 blocks of 32 values, each with a scale and a minimum of 6 bits.
template <typename block, bool has_high_bits>
struct mmfq_type_k45 {
    template <int NT> using src1 = mmfq_src1_int8<NT>;

    static constexpr int K      = QK_K;
    static constexpr int BYTES  = sizeof(block);
    static constexpr int COPY   = sizeof(block);
    static constexpr int STRIDE = sizeof(block);
    static constexpr mmfq_room ROOM[] = { { 12, 4 }, { 16, 4 }, { 20, 4 }, { 12, 3 } };
    static constexpr bool KEEPS = true;

    template <int NT, bool kept> using chunk = mmfq_chunk_int8<NT, K/32, kept>;

    template <int NT, typename Y>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const Y & y) {
        const int t = y.lane % 4;

        const char * row[2] = { x, x + 8*STRIDE };
        float2   dm[2];    // the scale of the scales, the scale of the minima
        uint32_t sc[2][2]; // 8 of each
        uint32_t mn[2][2];
        uint32_t qh[2][2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const uint32_t * w = (const uint32_t *) row[r];
            dm[r]    = __half22float2(*(const half2 *) row[r]);
            sc[r][0] = w[1] & 0x3F3F3F3F;
            mn[r][0] = w[2] & 0x3F3F3F3F;
            sc[r][1] = ( w[3]       & 0x0F0F0F0F) | ((w[1] >> 2) & 0x30303030);
            mn[r][1] = ((w[3] >> 4) & 0x0F0F0F0F) | ((w[2] >> 2) & 0x30303030);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                qh[r][j] = has_high_bits ? w[4 + 4*j + t] : 0;
            }
        }

        // The minima times the sums of the columns, on the tensor cores: a sum is two floats with 10 bits behind the point there.
        {
            mmfq_sums<NT> minima;
            const float m[4] = {
                (float) ((mn[0][0] >> 8*t) & 0xFF), (float) ((mn[1][0] >> 8*t) & 0xFF),
                (float) ((mn[0][1] >> 8*t) & 0xFF), (float) ((mn[1][1] >> 8*t) & 0xFF),
            };
            float sum[NT][2];
            y.sums(sum);
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                const float high[2] = { mmfq_tf32(sum[n][0]), mmfq_tf32(sum[n][1]) };
                mmfq_mma_k8(minima.v[n], m, mmfq_tf32(sum[n][0] - high[0]), mmfq_tf32(sum[n][1] - high[1]));
                mmfq_mma_k8(minima.v[n], m, high[0], high[1]);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    sums.v[n][i] = fmaf(-dm[i/2].y, minima.v[n][i], sums.v[n][i]);
                }
            }
        }

        mmfq_sums<NT> scaled;
#pragma unroll
        for (int b = 0; b < QK_K/32; ++b) {
            int   a[4];
            float s[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const uint32_t * qs = (const uint32_t *) (row[r] + offsetof(block, qs) + 32*(b/2));
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    a[r + 2*j] = (qs[4*j + t] >> 4*(b % 2)) & 0x0F0F0F0F;
                    if (has_high_bits) {
                        a[r + 2*j] |= ((qh[r][j] >> b) & 0x01010101) << 4;
                    }
                }
                s[r] = (float) ((sc[r][b/4] >> 8*(b % 4)) & 0xFF);
            }

            const mmfq_columns<NT> col = y.columns(b);
            int c[NT][4] = {};
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                mmfq_mma_k32(c[n], a, col.q[n][0], col.q[n][1]);
            }
            scaled.add(c, s[0], s[1], col.d);
        }
#pragma unroll
        for (int n = 0; n < NT; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums.v[n][i] = fmaf(dm[i/2].x, scaled.v[n][i], sums.v[n][i]);
            }
        }
    }
};

template <> struct mmfq_type<GGML_TYPE_Q4_K> : mmfq_type_k45<block_q4_K, false> {};
template <> struct mmfq_type<GGML_TYPE_Q5_K> : mmfq_type_k45<block_q5_K, true > {};

template <typename pair>
struct mmfq_type_floats {
    template <int NT> using src1 = mmfq_src1_floats<pair, NT>;

    static constexpr int K      = 128;
    static constexpr int BYTES  = 256;
    static constexpr int COPY   = 256;
    static constexpr int STRIDE = 320;
    static constexpr mmfq_room ROOM[] = { { 12, 3 }, { 16, 3 }, { 12, 3 }, { 12, 2 } };
    static constexpr bool KEEPS = false;

    template <int NT, bool kept> using chunk = mmfq_chunk_floats<pair, NT>;

    template <int NT, typename Y>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const Y & y) {
        const int lane = y.lane;
#pragma unroll
        for (int b = 0; b < K/32; ++b) {
            int row[2][4];
            int col[NT][4];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                ggml_cuda_memcpy_1<16>(row[r], x + r*8*STRIDE + 64*b + 16*(lane % 4));
            }
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                ggml_cuda_memcpy_1<16>(col[n], y.y[b].v[lane][n]);
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int a[4] = { row[0][2*h], row[1][2*h], row[0][2*h + 1], row[1][2*h + 1] };
#pragma unroll
                for (int n = 0; n < NT; ++n) {
                    mmfq_mma_k16<pair>(sums.v[n], a, col[n][2*h], col[n][2*h + 1]);
                }
            }
        }
    }
};

template <> struct mmfq_type<GGML_TYPE_F16>  : mmfq_type_floats<half2> {};
template <> struct mmfq_type<GGML_TYPE_BF16> : mmfq_type_floats<nv_bfloat162> {};

// Sums of a tile by one warp: 16 rows of a column behind each other, in halves that change places in
// every other pair of columns, against bank conflicts.
template <int NT>
static constexpr int mmfq_partial_size = 8*NT*MMFQ_ROWS;

static __device__ __forceinline__ int mmfq_partial(const int col, const int row) {
    return col*MMFQ_ROWS + (row ^ (8*(col/2 % 2)));
}

// Bytes for a warp: its ring and two partial sums, of two tiles in turns or of the two products of a GLU. Or one.
template <ggml_type type, int NT, mmfq_form form>
static constexpr __host__ __device__ int mmfq_warp_size() {
    return mmfq_type<type>::ROOM[form].n_stages*MMFQ_ROWS*mmfq_type<type>::STRIDE + (form == MMFQ_SMALL ? 1 : 2)*mmfq_partial_size<NT>*(int) sizeof(float);
}

// Bytes in which the first product of a GLU waits for the second one, for a tile.
template <int NT>
static constexpr int mmfq_waiting_size = mmfq_partial_size<NT>*(int) sizeof(float);

// Bytes in which a block of a cluster gets the sums of a tile from all of them. One tile is added up while blocks
// that are ahead store the next two.
static constexpr int MMFQ_GATHERED = 3;

template <int NT, bool glu>
static int mmfq_gathered_size(const int n_slices) {
    return n_slices == 1 ? 0 : MMFQ_GATHERED*n_slices*(glu ? 2 : 1)*mmfq_partial_size<NT>*(int) sizeof(float);
}

static __device__ __forceinline__ void mmfq_cluster_arrive() {
#if defined(GGML_CUDA_USE_PDL) && __CUDA_ARCH__ >= GGML_CUDA_CC_HOPPER
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#else
    NO_DEVICE_CODE;
#endif // defined(GGML_CUDA_USE_PDL) && __CUDA_ARCH__ >= GGML_CUDA_CC_HOPPER
}

static __device__ __forceinline__ void mmfq_cluster_wait() {
#if defined(GGML_CUDA_USE_PDL) && __CUDA_ARCH__ >= GGML_CUDA_CC_HOPPER
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    NO_DEVICE_CODE;
#endif // defined(GGML_CUDA_USE_PDL) && __CUDA_ARCH__ >= GGML_CUDA_CC_HOPPER
}

// Stores a value where another block of the cluster has `at` in its shared memory.
static __device__ __forceinline__ void mmfq_cluster_store(float * at, const int block, const float v) {
#if defined(GGML_CUDA_USE_PDL) && __CUDA_ARCH__ >= GGML_CUDA_CC_HOPPER
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((uint32_t) __cvta_generic_to_shared(at)), "r"(block));
    asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there), "f"(v) : "memory");
#else
    GGML_UNUSED_VARS(at, block, v);
    NO_DEVICE_CODE;
#endif // defined(GGML_CUDA_USE_PDL) && __CUDA_ARCH__ >= GGML_CUDA_CC_HOPPER
}

template <ggml_type type, int NT, bool glu, bool kept, mmfq_form form>
__launch_bounds__(32*mmfq_type<type>::ROOM[form].n_warps, 1)
static __global__ void mul_mat_few_q(const mmfq_args args) {
    using T     = mmfq_type<type>;
    using src1  = typename T::template src1<NT>;
    using chunk = typename T::template chunk<NT, kept>;

    constexpr bool sliced = form == MMFQ_SLICED;
    constexpr bool small  = form == MMFQ_SMALL;

    constexpr int max_warps  = T::ROOM[form].n_warps;
    constexpr int n_stages   = T::ROOM[form].n_stages;
    constexpr int stage_size = MMFQ_ROWS*T::STRIDE;
    constexpr int n_parts    = glu ? 2 : 1; // matrices that make one tile
    constexpr int n_sums     = mmfq_partial_size<NT>;

    extern __shared__ __align__(16) char mmfq_shared[];

    const int lane     = threadIdx.x % 32;
    const int warp     = threadIdx.x / 32;
    const int n_warps  = blockDim.x / 32;
    const int in_group = n_warps / args.n_groups; // warps of a tile
    const int group    = warp / in_group;
    const int my_chunk = warp % in_group;         // the first one

    const int n_slices = sliced ? args.n_slices : 1;
    const int slice    = sliced ? blockIdx.x % n_slices : 0; // the rank in the cluster
    const int tile_0   = blockIdx.x / n_slices * args.n_groups;
    const int step     = gridDim.x  / n_slices * args.n_groups;

    char  * ring     = mmfq_shared + warp*n_stages*stage_size;
    float * partial  = (float *) (mmfq_shared + n_warps*n_stages*stage_size);
    float * gathered = partial + 2*n_warps*n_sums;
    float * waiting  = partial +   n_warps*n_sums; // with little shared memory

    ggml_cuda_pdl_lc();
    if constexpr (sliced) {
        mmfq_cluster_arrive(); // this block has begun, so others can store into its shared memory
    }

    const auto first_row = [&](const int tile, const int part) -> const char * {
        if constexpr (glu) {
            return args.matrix[part].x + (int64_t) tile*MMFQ_ROWS*args.row_size;
        }
        const char * x     = args.matrix[0].x;
        int          begin = 0;
#pragma unroll
        for (int m = 1; m < MMFQ_MAX_MATRICES; ++m) {
            if (m < args.n_matrices && tile >= args.matrix[m - 1].tile_end) {
                x     = args.matrix[m].x;
                begin = args.matrix[m - 1].tile_end;
            }
        }
        return x + (int64_t) (tile - begin)*MMFQ_ROWS*args.row_size;
    };

    // the next chunk to copy
    int load_tile  = tile_0 + group;
    int load_part  = 0;
    int load_chunk = my_chunk;

    const auto load = [&](const int stage) {
        if (load_tile < args.n_tiles && load_chunk < args.n_chunks) {
            const char * x = first_row(load_tile, load_part) + (slice*args.n_chunks + load_chunk)*T::BYTES;

            constexpr int n_units = T::COPY/16; // of a row
#pragma unroll
            for (int i0 = 0; i0 < MMFQ_ROWS*n_units; i0 += 32) {
                const int i = i0 + lane;
                if (i0 + 32 > MMFQ_ROWS*n_units && i >= MMFQ_ROWS*n_units) {
                    break;
                }
                const int row  = i / n_units;
                const int unit = i % n_units;
                const char * from = x + row*args.row_size;
                if constexpr (T::COPY != T::BYTES) {
                    from = (const char *) ((uintptr_t) from & ~(uintptr_t) 15);
                }
                cp_async_cg_16<128>(ggml_cuda_cvta_generic_to_shared(ring + stage*stage_size + row*T::STRIDE + 16*unit), from + 16*unit);
            }
        }
        mmfq_commit();

        load_chunk += kept ? args.n_chunks : in_group;
        if (load_chunk >= args.n_chunks) {
            load_chunk = my_chunk;
            if (n_parts == 1 || load_part == 1) {
                load_part  = 0;
                load_tile += step;
            } else {
                load_part = 1;
            }
        }
    };

    // The weights do not depend on the kernel before this one: read them while it ends.
    if (!args.x_is_constant) {
        ggml_cuda_pdl_sync();
    }
#pragma unroll
    for (int stage = 0; stage < n_stages; ++stage) {
        load(stage);
    }
    if (args.x_is_constant) {
        ggml_cuda_pdl_sync();
    }

    const src1 * y = (const src1 *) args.y + slice*args.n_chunks*(T::K/32);
    const chunk  kept_y(y + my_chunk*(T::K/32), lane);

    const auto store = [&](const int tile, const int col, const int row, const float up, const float gate) {
        if (tile >= args.n_tiles || col >= args.n_cols) {
            return;
        }
        if constexpr (glu) {
            args.matrix[0].dst[col*args.matrix[0].stride_dst + tile*MMFQ_ROWS + row] = up*ggml_cuda_op_silu_single(gate);
        } else {
            float * dst   = args.matrix[0].dst + col*args.matrix[0].stride_dst;
            int     begin = 0;
#pragma unroll
            for (int m = 1; m < MMFQ_MAX_MATRICES; ++m) {
                if (m < args.n_matrices && tile >= args.matrix[m - 1].tile_end) {
                    dst   = args.matrix[m].dst + col*args.matrix[m].stride_dst;
                    begin = args.matrix[m - 1].tile_end;
                }
            }
            const int i = (tile - begin)*MMFQ_ROWS + row;
            dst[i] = args.add ? up + args.add[col*args.stride_add + i] : up;
        }
    };

    // The sums of all blocks of the cluster, for the tile that is the n-th of each. They have arrived.
    const auto finish = [&](const int n) {
        if (n % n_slices != slice) {
            return;
        }
        for (int i = threadIdx.x; i < n_sums; i += blockDim.x) {
            float sums[n_parts] = {};
#pragma unroll
            for (int part = 0; part < n_parts; ++part) {
#pragma unroll
                for (int s = 0; s < MMFQ_SLICES; ++s) {
                    if (s < n_slices) {
                        sums[part] += gathered[(((n % MMFQ_GATHERED)*n_slices + s)*n_parts + part)*n_sums + i];
                    }
                }
            }
            store(tile_0 + n*step, i / MMFQ_ROWS, i % MMFQ_ROWS, sums[0], sums[n_parts - 1]);
        }
    };

    // The i-th sum of the tiles of a block, of what its warps have in `partial`.
    const auto sum_of_warps = [&](const float * partial, const int i) {
        const float * p = partial + i / n_sums * in_group*n_sums + mmfq_partial(i % n_sums / MMFQ_ROWS, i % MMFQ_ROWS);
        float sum = 0.0f;
#pragma unroll
        for (int w = 0; w < max_warps; ++w) {
            if (w < in_group) {
                sum += p[w*n_sums];
            }
        }
        return sum;
    };

    int stage = 0;
    int n     = 0; // tiles that are done
    for (int tile = tile_0; tile < args.n_tiles; tile += step, ++n) {
#pragma unroll
        for (int part = 0; part < n_parts; ++part) {
            mmfq_sums<NT> sums;
            for (int c = my_chunk; c < args.n_chunks; c += kept ? args.n_chunks : in_group) {
                mmfq_wait<n_stages - 1>();
                __syncwarp();

                const char * x = ring + stage*stage_size + (lane/4)*T::STRIDE;
                const auto mul = [&](const chunk & columns) {
                    if constexpr (T::COPY != T::BYTES) {
                        const uintptr_t from = (uintptr_t) first_row(tile + group, part) + (slice*args.n_chunks + c)*T::BYTES + (lane/4)*args.row_size;
                        T::template mul<NT>(sums, x + from % 16, x + 8*T::STRIDE + (from + 8*args.row_size) % 16, columns);
                    } else {
                        T::template mul<NT>(sums, x, columns);
                    }
                };
                if constexpr (kept) {
                    mul(kept_y);
                } else {
                    mul(chunk(y + c*(T::K/32), lane));
                }

                __syncwarp();
                load(stage);
                stage = stage + 1 == n_stages ? 0 : stage + 1;
            }

            float * p = partial + ((small ? 0 : glu ? part : n % 2)*n_warps + warp)*n_sums;
#pragma unroll
            for (int t = 0; t < NT; ++t) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    p[mmfq_partial(8*t + 2*(lane % 4) + i % 2, lane/4 + 8*(i/2))] = sums.v[t][i];
                }
            }

            if constexpr (small) {
                __syncthreads();
                for (int i = threadIdx.x; i < args.n_groups*n_sums; i += blockDim.x) {
                    const float sum = sum_of_warps(partial, i);
                    if (part + 1 < n_parts) {
                        waiting[i] = sum; // for this thread
                    } else {
                        store(tile + i / n_sums, i % n_sums / MMFQ_ROWS, i % MMFQ_ROWS, glu ? waiting[i] : sum, sum);
                    }
                }
                __syncthreads(); // the sums have been read
            }
        }
        if constexpr (small) {
            continue;
        }
        __syncthreads();

        if constexpr (sliced) {
            mmfq_cluster_wait(); // all have stored the tile before, and this tile's place is free
        }
        for (int i = threadIdx.x; i < args.n_groups*n_sums; i += blockDim.x) {
            float sums[n_parts];
#pragma unroll
            for (int part = 0; part < n_parts; ++part) {
                sums[part] = sum_of_warps(partial + (glu ? part : n % 2)*n_warps*n_sums, i);
            }
            if constexpr (sliced) {
#pragma unroll
                for (int part = 0; part < n_parts; ++part) {
                    mmfq_cluster_store(gathered + (((n % MMFQ_GATHERED)*n_slices + slice)*n_parts + part)*n_sums + i, n % n_slices, sums[part]);
                }
            } else {
                store(tile + i / n_sums, i % n_sums / MMFQ_ROWS, i % MMFQ_ROWS, sums[0], sums[n_parts - 1]);
            }
        }
        if constexpr (sliced) {
            mmfq_cluster_arrive();
            if (n > 0) {
                finish(n - 1);
            }
        }
        if constexpr (glu) {
            __syncthreads(); // the sums have been read
        }
    }
    if constexpr (sliced) {
        mmfq_cluster_wait(); // no block ends before the others have stored what they have for it
        if (n > 0) {
            finish(n - 1);
        }
    }
}

// Thread i of a column has its values 4*i ... 4*i + 3.
template <typename src1>
static __device__ __forceinline__ void mmfq_store(void * y, const int n_values, const int i, const int col, const float4 v) {
    src1::store(((src1 *) y)[col/MMFQ_COLS*(n_values/32) + i/8], i % 8, col % MMFQ_COLS, v);
}

template <typename src1>
static __global__ void mmfq_quantize(const float * x, const int64_t stride_col, void * y) {
    ggml_cuda_pdl_lc();

    const int i   = blockIdx.x*blockDim.x + threadIdx.x;
    const int col = blockIdx.y;

    ggml_cuda_pdl_sync();
    mmfq_store<src1>(y, 4*gridDim.x*blockDim.x, i, col, ((const float4 *) (x + col*stride_col))[i]);
}

// A block of threads takes a column.
template <typename src1>
static __global__ void mmfq_rms_norm(
        const float * x, const int64_t stride_col, const float * weight, float * dst, void * y, const int n, const float eps) {
    ggml_cuda_pdl_lc();

    const int col = blockIdx.x;
    const float4 * x4   = (const float4 *) (x + col*stride_col);
    const float4 * w4   = (const float4 *) weight;
    float4       * dst4 = (float4 *) (dst + (int64_t) col*n);

    __shared__ float sums[32];

    ggml_cuda_pdl_sync();

    // The first values of a thread, mostly its only ones, stay in registers; they and their weights are read together.
    const float4 v0 = x4[threadIdx.x];
    const float4 w0 = w4[threadIdx.x];

    float sum = v0.x*v0.x + v0.y*v0.y + v0.z*v0.z + v0.w*v0.w;
    for (int i = threadIdx.x + blockDim.x; i < n/4; i += blockDim.x) {
        const float4 v = x4[i];
        sum += v.x*v.x + v.y*v.y + v.z*v.z + v.w*v.w;
    }
    sum = warp_reduce_sum(sum);
    if (threadIdx.x % WARP_SIZE == 0) {
        sums[threadIdx.x/WARP_SIZE] = sum;
    }
    __syncthreads();
    sum = threadIdx.x % WARP_SIZE < blockDim.x/WARP_SIZE ? sums[threadIdx.x % WARP_SIZE] : 0.0f;
    sum = warp_reduce_sum(sum);

    const float scale = rsqrtf(sum/n + eps);
    for (int i = threadIdx.x; i < n/4; i += blockDim.x) {
        const bool   first = i == (int) threadIdx.x;
        const float4 v = first ? v0 : x4[i];
        const float4 w = first ? w0 : w4[i];
        const float4 r = make_float4(scale*v.x*w.x, scale*v.y*w.y, scale*v.z*w.z, scale*v.w*w.w);
        dst4[i] = r;
        mmfq_store<src1>(y, n, i, col, r);
    }
}

// A warp takes a head of 128 values.
template <typename src1>
static __global__ void mmfq_rms_norm_gated(
        const float * x, const float * weight, const float * gate, float * dst, void * y, const int n_heads, const float eps) {
    ggml_cuda_pdl_lc();

    const int lane = threadIdx.x % WARP_SIZE;
    const int head = (blockIdx.x*blockDim.x + threadIdx.x)/WARP_SIZE;
    const int col  = blockIdx.y;
    const int i    = head*WARP_SIZE + lane; // of the column, in units of 4
    const int64_t at = (int64_t) col*n_heads*WARP_SIZE + i;

    ggml_cuda_pdl_sync();

    const float4 v = ((const float4 *) x)[at];
    const float4 g = ((const float4 *) gate)[at];
    const float4 w = ((const float4 *) weight)[lane];

    const float sum   = warp_reduce_sum(v.x*v.x + v.y*v.y + v.z*v.z + v.w*v.w);
    const float scale = rsqrtf(sum/128 + eps);

    const float4 r = make_float4(
        scale*v.x*w.x*ggml_cuda_op_silu_single(g.x), scale*v.y*w.y*ggml_cuda_op_silu_single(g.y),
        scale*v.z*w.z*ggml_cuda_op_silu_single(g.z), scale*v.w*w.w*ggml_cuda_op_silu_single(g.w));
    ((float4 *) dst)[at] = r;
    mmfq_store<src1>(y, 4*WARP_SIZE*n_heads, i, col, r);
}

// Bytes of shared memory that a block must have, and from which on it takes tiles of full size.
static constexpr size_t MMFQ_SHARED       =  96*1024;
static constexpr size_t MMFQ_SHARED_WHOLE = 128*1024;

// Bytes of shared memory that a block may take. GGML_CUDA_FEW_SHARED leaves that many KiB of them: so any device can show
// what one with less does.
static size_t mmfq_shared_memory(const int device) {
    static const size_t most = [] {
        const char * kib = getenv("GGML_CUDA_FEW_SHARED");
        return kib != nullptr ? 1024*(size_t) strtoull(kib, nullptr, 10) : SIZE_MAX;
    }();
    return std::min(ggml_cuda_info().devices[device].smpbo, most);
}

// How the rows of a type and length are cut. It is the same for any number of columns.
struct mmfq_cut {
    mmfq_form form = MMFQ_WHOLE;
    int n_slices = 0; // 0: there is no room for it
    int n_chunks = 0; // of a slice
    int n_warps  = 0; // of a tile
    int n_groups = 0; // tiles at a time
};

template <ggml_type type>
static mmfq_cut mmfq_cut_row(const int64_t n_values, const int device) {
    using T = mmfq_type<type>;
    const size_t shared   = mmfq_shared_memory(device);
    const int    n_chunks = n_values/T::K;

    // The fewest turns of as many warps as fit, and as many tiles at a time.
    const auto cut = [&](const mmfq_form form, const size_t warp_size, const size_t tile_size) -> mmfq_cut {
        const int max_warps = std::min<int>(T::ROOM[form].n_warps, (shared - tile_size)/warp_size);
        const int n_turns   = (n_chunks + max_warps - 1)/max_warps;
        const int n_warps   = (n_chunks + n_turns - 1)/n_turns;
        const int n_groups  = std::min<int>(max_warps/n_warps, shared/(n_warps*warp_size + tile_size));
        return { form, 1, n_chunks, n_warps, n_groups };
    };
    if (shared < MMFQ_SHARED) {
        return {};
    }
    if (shared < MMFQ_SHARED_WHOLE) {
        return cut(MMFQ_SMALL, mmfq_warp_size<type, 2, MMFQ_SMALL>(), mmfq_waiting_size<2>);
    }
    if (n_chunks > T::ROOM[MMFQ_WHOLE].n_warps) {
        if (n_chunks <= T::ROOM[MMFQ_LONG].n_warps && n_chunks*mmfq_warp_size<type, 2, MMFQ_LONG>() <= shared) {
            return { MMFQ_LONG, 1, n_chunks, n_chunks, 1 };
        }
#ifdef GGML_CUDA_USE_PDL
        // the same condition as for a programmatic launch: the kernel is made for this generation of devices
        constexpr auto   kernel    = mul_mat_few_q<type, 1, false, T::KEEPS, MMFQ_SLICED>;
        constexpr size_t warp_size = mmfq_warp_size<type, 2, MMFQ_SLICED>();
        if (ggml_cuda_info().devices[device].cc >= GGML_CUDA_CC_HOPPER && ggml_cuda_kernel_can_use_pdl((const void *) kernel)) {
            for (int n_slices = 2; n_slices <= MMFQ_SLICES; ++n_slices) {
                const int n_warps = n_chunks/n_slices;
                if (n_chunks % n_slices == 0 && n_warps <= T::ROOM[MMFQ_SLICED].n_warps &&
                        n_warps*warp_size + mmfq_gathered_size<2, true>(n_slices) <= shared) {
                    return { MMFQ_SLICED, n_slices, n_warps, n_warps, 1 };
                }
            }
        }
#endif // GGML_CUDA_USE_PDL
    }
    return cut(MMFQ_WHOLE, mmfq_warp_size<type, 2, MMFQ_WHOLE>(), 0);
}

static std::atomic<uint64_t> mmfq_n_launched[2] = {}; // with tiles of full size, with little shared memory

void ggml_cuda_mmfq_count(uint64_t * n_whole, uint64_t * n_small) {
    *n_whole = mmfq_n_launched[0];
    *n_small = mmfq_n_launched[1];
}

template <ggml_type type, int NT, bool glu, bool kept, mmfq_form form>
static void mmfq_launch(mmfq_args args, const mmfq_cut & cut, const int device, cudaStream_t stream) {
    constexpr auto kernel = mul_mat_few_q<type, NT, glu, kept, form>;
    mmfq_n_launched[form == MMFQ_SMALL]++;

    args.n_chunks = cut.n_chunks;
    args.n_slices = cut.n_slices;
    args.n_groups = cut.n_groups;

    const int n_warps = args.n_groups*cut.n_warps;
    const int nbytes  = n_warps*mmfq_warp_size<type, NT, form>() +
        (form == MMFQ_SMALL ? args.n_groups*mmfq_waiting_size<NT> : mmfq_gathered_size<NT, glu>(cut.n_slices));
    CUDA_SET_SHARED_MEMORY_LIMIT((mul_mat_few_q<type, NT, glu, kept, form>), (int) ggml_cuda_info().devices[device].smpbo);

    const int  n_sets = (args.n_tiles + args.n_groups - 1)/args.n_groups;
    const dim3 threads(32*n_warps, 1, 1);
#ifdef GGML_CUDA_USE_PDL
    if constexpr (form == MMFQ_SLICED) {
        ggml_cuda_pdl_config pdl(ggml_cuda_kernel_launch_params(dim3(cut.n_slices, 1, 1), threads, nbytes, stream));
        cudaLaunchAttribute attrs[2] = { pdl.attr, {} };
        attrs[1].id = cudaLaunchAttributeClusterDimension;
        attrs[1].val.clusterDim = { (unsigned) cut.n_slices, 1, 1 };
        pdl.cfg.attrs    = attrs;
        pdl.cfg.numAttrs = 2;

        // As many as can run at a time, which is less than the multiprocessors would have room for: a cluster takes
        // its own from one part of the device. And no more than it takes for as few turns.
        int at_once = 0;
        CUDA_CHECK(cudaOccupancyMaxActiveClusters(&at_once, kernel, &pdl.cfg));
        at_once = std::max(at_once, 1);
        const int n_turns = (n_sets + at_once - 1)/at_once;
        pdl.cfg.gridDim.x = (n_sets + n_turns - 1)/n_turns*cut.n_slices;
        CUDA_CHECK(cudaLaunchKernelEx(&pdl.cfg, kernel, args));
        return;
    }
#endif // GGML_CUDA_USE_PDL
    const int n_blocks = std::min(n_sets, ggml_cuda_info().devices[device].nsm);
    const ggml_cuda_kernel_launch_params params(dim3(n_blocks, 1, 1), threads, nbytes, stream);
    ggml_cuda_kernel_launch(kernel, params, args);
}

template <ggml_type type, int NT, bool glu>
static void mmfq_launch(const mmfq_args & args, const mmfq_cut & cut, const int device, cudaStream_t stream) {
    using T = mmfq_type<type>;
    constexpr bool keeps = T::KEEPS;
    const bool     kept  = keeps && cut.n_chunks == cut.n_warps;
    switch (cut.form) {
        case MMFQ_LONG:
            if constexpr (T::ROOM[MMFQ_LONG].n_warps > T::ROOM[MMFQ_WHOLE].n_warps) {
                mmfq_launch<type, NT, glu, keeps, MMFQ_LONG>(args, cut, device, stream);
            }
            break;
        case MMFQ_SLICED:
            mmfq_launch<type, NT, glu, keeps && NT == 1, MMFQ_SLICED>(args, cut, device, stream);
            break;
        case MMFQ_WHOLE:
            kept ? mmfq_launch<type, NT, glu, keeps, MMFQ_WHOLE>(args, cut, device, stream) :
                   mmfq_launch<type, NT, glu, false, MMFQ_WHOLE>(args, cut, device, stream);
            break;
        case MMFQ_SMALL:
            kept ? mmfq_launch<type, NT, glu, keeps, MMFQ_SMALL>(args, cut, device, stream) :
                   mmfq_launch<type, NT, glu, false, MMFQ_SMALL>(args, cut, device, stream);
            break;
    }
}

template <ggml_type type>
static void mmfq_launch(const mmfq_args & args, const mmfq_cut & cut, const bool one_tile, const bool glu, const int device, cudaStream_t stream) {
    if (one_tile) {
        if (glu) {
            mmfq_launch<type, 1, true >(args, cut, device, stream);
        } else {
            mmfq_launch<type, 1, false>(args, cut, device, stream);
        }
    } else {
        if (glu) {
            mmfq_launch<type, 2, true >(args, cut, device, stream);
        } else {
            mmfq_launch<type, 2, false>(args, cut, device, stream);
        }
    }
}

// Calls f with the properties of a type of weights, and of a number of columns, where there are kernels for it.
template <typename F>
static bool mmfq_visit(const ggml_type type, const F & f) {
    switch (type) {
        case GGML_TYPE_Q8_0: f(mmfq_type<GGML_TYPE_Q8_0>(), std::integral_constant<ggml_type, GGML_TYPE_Q8_0>()); return true;
        case GGML_TYPE_Q4_K: f(mmfq_type<GGML_TYPE_Q4_K>(), std::integral_constant<ggml_type, GGML_TYPE_Q4_K>()); return true;
        case GGML_TYPE_Q5_K: f(mmfq_type<GGML_TYPE_Q5_K>(), std::integral_constant<ggml_type, GGML_TYPE_Q5_K>()); return true;
        case GGML_TYPE_Q6_K: f(mmfq_type<GGML_TYPE_Q6_K>(), std::integral_constant<ggml_type, GGML_TYPE_Q6_K>()); return true;
        case GGML_TYPE_F16:  f(mmfq_type<GGML_TYPE_F16 >(), std::integral_constant<ggml_type, GGML_TYPE_F16 >()); return true;
        case GGML_TYPE_BF16: f(mmfq_type<GGML_TYPE_BF16>(), std::integral_constant<ggml_type, GGML_TYPE_BF16>()); return true;
        default:             return false;
    }
}

// The same with the form in which the activation is kept.
template <typename F>
static void mmfq_visit_src1(const ggml_type type, const int64_t n_cols, const F & f) {
    mmfq_visit(type, [&](auto t, auto) {
        using T = decltype(t);
        if (n_cols <= 8) {
            f(typename T::template src1<1>());
        } else {
            f(typename T::template src1<2>());
        }
    });
}

// Whether both products read one form of one activation.
static bool mmfq_same_src1(const ggml_tensor * a, const ggml_tensor * b) {
    const auto form = [](const ggml_type type) { return ggml_is_quantized(type) ? GGML_TYPE_Q8_0 : type; };
    return a != nullptr && a->src[1] == b->src[1] && form(a->src[0]->type) == form(b->src[0]->type);
}

size_t ggml_cuda_mmfq_src1_size(const ggml_tensor * product) {
    const ggml_tensor * src1 = product->src[1];
    const int64_t n_blocks = src1->ne[0]/32 * ((src1->ne[1] + MMFQ_COLS - 1)/MMFQ_COLS);
    size_t size = 0;
    mmfq_visit_src1(product->src[0]->type, src1->ne[1], [&](auto block) { size = n_blocks*sizeof(block); });
    return size;
}

bool ggml_cuda_mmfq_src1_is_changed(const ggml_tensor * product, const ggml_tensor * node) {
    const bool computes = node->op != GGML_OP_NONE && node->op != GGML_OP_RESHAPE && node->op != GGML_OP_VIEW &&
        node->op != GGML_OP_PERMUTE && node->op != GGML_OP_TRANSPOSE;
    if (product == nullptr || node->view_src == nullptr || !computes) {
        return false;
    }
    const ggml_tensor * src1 = product->src[1];
    const char * begin = (const char *) node->data;
    const char * read  = (const char *) src1->data;
    return begin < read + ggml_nbytes(src1) && read < begin + ggml_nbytes(node);
}

bool ggml_cuda_should_use_mmfq(const ggml_tensor * dst, const int cc) {
    const ggml_tensor * src0 = dst->src[0];
    const ggml_tensor * src1 = dst->src[1];

    if (!ampere_mma_available(cc) || !cp_async_available(cc)) {
        return false;
    }
    bool fits = false;
    const bool known = mmfq_visit(src0->type, [&](auto t, auto type) {
        fits = src0->ne[0] % decltype(t)::K == 0 &&
            mmfq_cut_row<decltype(type)::value>(src0->ne[0], ggml_cuda_get_device()).n_slices > 0;
    });

    return known && fits && src0->ne[0] % 256 == 0 && src1->type == GGML_TYPE_F32 && dst->type == GGML_TYPE_F32 &&
        src1->ne[1] <= MMFQ_MAX_COLS && ggml_nrows(src0) == src0->ne[1] && ggml_nrows(src1) == src1->ne[1] &&
        src0->ne[1] % MMFQ_ROWS == 0 && ggml_is_contiguous(src0) && (uintptr_t) src0->data % 16 == 0 &&
        src1->nb[0] == sizeof(float) && src1->nb[1] % 16 == 0 && (uintptr_t) src1->data % 16 == 0 &&
        dst->nb[0] == sizeof(float);
}

// The activation of a graph is quantized once, however many products read it.
static const void * mmfq_quantized(ggml_backend_cuda_context & ctx, const ggml_tensor * product, void * buffer) {
    const ggml_tensor * src1 = product->src[1];
    const int64_t stride_col = src1->nb[1]/sizeof(float);
    const dim3    blocks(src1->ne[0]/256, src1->ne[1], 1);
    const dim3    threads(64, 1, 1);
    const ggml_cuda_kernel_launch_params params(blocks, threads, 0, ctx.stream());
    mmfq_visit_src1(product->src[0]->type, src1->ne[1], [&](auto block) {
        ggml_cuda_kernel_launch(mmfq_quantize<decltype(block)>, params, (const float *) src1->data, stride_col, buffer);
    });
    return buffer;
}

void ggml_cuda_mul_mat_few_q(
        ggml_backend_cuda_context & ctx, ggml_tensor * const * dst, const int n, const ggml_cuda_mmfq_fusion & fusion) {
    GGML_ASSERT(n >= 1 && n <= MMFQ_MAX_MATRICES);

    const ggml_tensor * src0 = dst[0]->src[0];
    const ggml_tensor * src1 = dst[0]->src[1];

    ggml_cuda_pool_alloc<char> own(ctx.pool());
    const void * y;
    if (ctx.mmfq_src1.buffer != nullptr && ctx.curr_stream_no == 0) {
        if (!mmfq_same_src1(ctx.mmfq_src1.product, dst[0])) {
            mmfq_quantized(ctx, dst[0], ctx.mmfq_src1.buffer);
            ctx.mmfq_src1.product = dst[0];
        }
        y = ctx.mmfq_src1.buffer;
    } else {
        y = mmfq_quantized(ctx, dst[0], own.alloc(ggml_cuda_mmfq_src1_size(dst[0])));
    }

    mmfq_args args = {};
    args.n_matrices    = n;
    args.row_size      = src0->nb[1];
    args.y             = y;
    args.x_is_constant = true;

    int tile_end = 0;
    for (int i = 0; i < n; ++i) {
        const ggml_tensor * w   = dst[i]->src[0];
        const ggml_tensor * out = fusion.out != nullptr && i == 0 ? fusion.out : dst[i];
        GGML_ASSERT(dst[i]->src[1] == src1 && w->type == src0->type && w->ne[0] == src0->ne[0]);

        tile_end += w->ne[1]/MMFQ_ROWS;
        args.matrix[i].x          = (const char *) w->data;
        args.matrix[i].dst        = (float *) out->data;
        args.matrix[i].stride_dst = out->nb[1]/sizeof(float);
        args.matrix[i].tile_end   = tile_end;
        args.x_is_constant = args.x_is_constant && ggml_backend_buffer_get_usage(w->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    }
    args.n_tiles = fusion.glu != nullptr ? args.matrix[0].tile_end : tile_end;
    if (fusion.add != nullptr) {
        args.add        = (const float *) fusion.add->data;
        args.stride_add = fusion.add->nb[1]/sizeof(float);
    }

    const bool   glu        = fusion.glu != nullptr;
    const size_t group_size = ggml_cuda_mmfq_src1_size(dst[0])/((src1->ne[1] + MMFQ_COLS - 1)/MMFQ_COLS);
    mmfq_visit(src0->type, [&](auto, auto type) {
        const mmfq_cut cut = mmfq_cut_row<decltype(type)::value>(src0->ne[0], ctx.device);
        ctx.launched_clusters = ctx.launched_clusters || cut.n_slices > 1;
        for (int64_t col = 0; col < src1->ne[1]; col += MMFQ_COLS) {
            args.n_cols = std::min<int64_t>(src1->ne[1] - col, MMFQ_COLS);
            mmfq_launch<decltype(type)::value>(args, cut, src1->ne[1] <= 8, glu, ctx.device, ctx.stream());

            args.y = (const char *) args.y + group_size;
            for (int i = 0; i < n; ++i) {
                args.matrix[i].dst += MMFQ_COLS*args.matrix[i].stride_dst;
            }
            if (args.add != nullptr) {
                args.add += MMFQ_COLS*args.stride_add;
            }
        }
    });
}

void ggml_cuda_mmfq_rms_norm(
        ggml_backend_cuda_context & ctx, const ggml_tensor * norm, const ggml_tensor * weight, const ggml_tensor * out, const ggml_tensor * product) {
    const ggml_tensor * x = norm->src[0];

    const int   n   = x->ne[0];
    const float eps = ggml_get_op_params_f32(norm, 0);

    const dim3 threads(std::min(1024, n/4), 1, 1);
    const ggml_cuda_kernel_launch_params params(dim3(x->ne[1], 1, 1), threads, 0, ctx.stream());
    mmfq_visit_src1(product->src[0]->type, x->ne[1], [&](auto block) {
        ggml_cuda_kernel_launch(mmfq_rms_norm<decltype(block)>, params, (const float *) x->data, (int64_t) (x->nb[1]/sizeof(float)),
            (const float *) weight->data, (float *) out->data, ctx.mmfq_src1.buffer, n, eps);
    });
    ctx.mmfq_src1.product = product;
}

void ggml_cuda_mmfq_rms_norm_gated(
        ggml_backend_cuda_context & ctx, const ggml_tensor * norm, const ggml_tensor * weight, const ggml_tensor * gate,
        const ggml_tensor * out, const ggml_tensor * product) {
    const ggml_tensor * src1 = product->src[1];

    const int   n_heads = src1->ne[0]/128;
    const float eps     = ggml_get_op_params_f32(norm, 0);

    constexpr int heads_per_block = 2;
    const dim3 threads(heads_per_block*WARP_SIZE, 1, 1);
    const ggml_cuda_kernel_launch_params params(dim3(n_heads/heads_per_block, src1->ne[1], 1), threads, 0, ctx.stream());
    mmfq_visit_src1(product->src[0]->type, src1->ne[1], [&](auto block) {
        ggml_cuda_kernel_launch(mmfq_rms_norm_gated<decltype(block)>, params, (const float *) norm->src[0]->data,
            (const float *) weight->data, (const float *) gate->data, (float *) out->data, ctx.mmfq_src1.buffer, n_heads, eps);
    });
    ctx.mmfq_src1.product = product;
}
