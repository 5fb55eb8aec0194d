#include "mmfq.cuh"
#include "convert.cuh"
#include "cp-async.cuh"
#include "unary.cuh"

#include <cstdint>

// A block of threads takes tiles of 16 rows of the weights, one after the other. The row is cut into
// chunks, and the warps take the chunks of a tile in turn: each copies its chunks into a ring of its
// own in shared memory, several ahead and across tiles, and multiplies them on the tensor cores. At
// the end of a tile the partial sums of the warps are added, always in the order of the chunks, so a
// result depends neither on the number of columns nor on the place of its row.
//
// The activation comes quantized to 8 bits in blocks of 32, or as floats of 16 bits like the weights, in
// the order in which the lanes of a warp need it: see mmfq_src1_int8 and mmfq_src1_floats. Columns
// beyond 16 are another launch, which finds them behind the first 16.

static constexpr int MMFQ_ROWS  = 16; // of a tile
static constexpr int MMFQ_WARPS =  8;
static constexpr int MMFQ_COLS  = 16; // of a launch
static constexpr int MMFQ_STRIDE_COL = MMFQ_ROWS + 4; // of the partial sums, without bank conflicts

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
    int           n_chunks; // of a row
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

// What a lane reads of 32 values of the columns.
template <int NT>
struct mmfq_columns {
    int   q[NT][2];
    float d[NT][2];

    __device__ __forceinline__ void load(const mmfq_src1_int8<NT> & y, const int lane) {
        ggml_cuda_memcpy_1<sizeof(q)>(q, y.qs[lane]);
        ggml_cuda_memcpy_1<sizeof(d)>(d, y.d[lane % 4]);
    }
};

// A type tells how many bytes of a row make a chunk, how they lie in shared memory and how to
// multiply them. `x` is where the chunk of the lane's first row begins, its other row is 8 rows on.

template <ggml_type type> struct mmfq_type;

template <> struct mmfq_type<GGML_TYPE_Q8_0> {
    template <int NT> using src1 = mmfq_src1_int8<NT>;
    static constexpr int K      = 256;  // values of a chunk
    static constexpr int BYTES  = 272;  // of a chunk
    static constexpr int COPY   = 272;  // bytes copied, in units of 16
    static constexpr int STRIDE = 272;  // of the rows in shared memory, chosen against bank conflicts
    static constexpr int STAGES = 3;

    // Two blocks are 17 words: the first block's values begin in the middle of a word.
    template <int NT>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const mmfq_src1_int8<NT> * y, const int lane) {
        const int t = lane % 4;
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
                mmfq_columns<NT> col;
                col.load(y[2*p + b], lane);
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
    static constexpr int STAGES = 2;

    // A word that may begin in the middle of one.
    static __device__ __forceinline__ uint32_t word(const char * x, const int offset, const bool odd) {
        const uint32_t * w = (const uint32_t *) (x + offset - (odd ? 2 : 0));
        return odd ? __byte_perm(w[0], w[1], 0x5432) : w[0];
    }

    template <int NT>
    static __device__ __forceinline__ void mul(
            mmfq_sums<NT> & sums, const char * x, const char * x8, const mmfq_src1_int8<NT> * y, const int lane) {
        const int t = lane % 4;
#pragma unroll
        for (int k = 0; k < K/QK_K; ++k) {
            const bool   odd      = k % 2 != 0; // 210 bytes on
            const char * block[2] = { x + k*sizeof(block_q6_K), x8 + k*sizeof(block_q6_K) };
            const float  d[2]     = {
                // the values are multiplied by 4 below
                0.25f*__half2float(*(const half *) (block[0] + offsetof(block_q6_K, d))),
                0.25f*__half2float(*(const half *) (block[1] + offsetof(block_q6_K, d))),
            };
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
                        qh[r][j]    = word(block[r], offsetof(block_q6_K, qh)     + 32*h + 16*j + 4*t, odd);
                        sc[r][j]    = word(block[r], offsetof(block_q6_K, scales) +  8*h +  4*j,       odd);
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) { // 32 values each
                    mmfq_columns<NT> col;
                    col.load(y[k*(QK_K/32) + 4*h + i], lane);
                    int c[NT][4] = {};
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        int a[2];
                        int s[2];
#pragma unroll
                        for (int r = 0; r < 2; ++r) {
                            // 4*(q - 32): two bits further left, the highest of them turned into the sign
                            const uint32_t lo = i < 2 ? ql[r][i % 2][j] << 2 : ql[r][i % 2][j] >> 2;
                            const uint32_t hi = i < 3 ? qh[r][j] << (6 - 2*i) : qh[r][j];
                            a[r] = ((lo & 0x3C3C3C3C) | (hi & 0xC0C0C0C0)) ^ 0x80808080;
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
                    sums.add(c, d[0], d[1], col.d);
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
    static constexpr int STAGES = 4;

    template <int NT>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const mmfq_src1_int8<NT> * y, const int lane) {
        const int t = lane % 4;

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

        mmfq_sums<NT> scaled;
        mmfq_sums<NT> minima;
#pragma unroll
        for (int b = 0; b < QK_K/32; ++b) {
            int   a[4];
            float s[2];
            float m[2];
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
                m[r] = (float) ((mn[r][b/4] >> 8*(b % 4)) & 0xFF);
            }

            mmfq_columns<NT> col;
            col.load(y[b], lane);
            float sum[NT][2];
            ggml_cuda_memcpy_1<sizeof(sum)>(sum, y[b].sum[t]);

            int c[NT][4] = {};
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                mmfq_mma_k32(c[n], a, col.q[n][0], col.q[n][1]);
                minima.v[n][0] = fmaf(m[0], sum[n][0], minima.v[n][0]);
                minima.v[n][1] = fmaf(m[0], sum[n][1], minima.v[n][1]);
                minima.v[n][2] = fmaf(m[1], sum[n][0], minima.v[n][2]);
                minima.v[n][3] = fmaf(m[1], sum[n][1], minima.v[n][3]);
            }
            scaled.add(c, s[0], s[1], col.d);
        }
#pragma unroll
        for (int n = 0; n < NT; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums.v[n][i] = fmaf( dm[i/2].x, scaled.v[n][i], sums.v[n][i]);
                sums.v[n][i] = fmaf(-dm[i/2].y, minima.v[n][i], sums.v[n][i]);
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
    static constexpr int STAGES = 3;

    template <int NT>
    static __device__ __forceinline__ void mul(mmfq_sums<NT> & sums, const char * x, const mmfq_src1_floats<pair, NT> * y, const int lane) {
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
                ggml_cuda_memcpy_1<16>(col[n], y[b].v[lane][n]);
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

template <ggml_type type, int NT>
static constexpr __host__ __device__ int mmfq_shared_size() {
    using T = mmfq_type<type>;
    return MMFQ_WARPS*(T::STAGES*MMFQ_ROWS*T::STRIDE + 8*NT*MMFQ_STRIDE_COL*(int) sizeof(float));
}

template <ggml_type type, int NT, bool glu>
__launch_bounds__(MMFQ_WARPS*32, 2)
static __global__ void mul_mat_few_q(const mmfq_args args) {
    using T = mmfq_type<type>;

    constexpr int stage_size = MMFQ_ROWS*T::STRIDE;
    constexpr int n_parts    = glu ? 2 : 1; // matrices that make one tile

    extern __shared__ __align__(16) char mmfq_shared[];

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    char  * ring    = mmfq_shared + warp*T::STAGES*stage_size;
    float * partial = (float *) (mmfq_shared + MMFQ_WARPS*T::STAGES*stage_size);

    const int n_chunks = n_parts*args.n_chunks; // of a tile

    ggml_cuda_pdl_lc();

    // the next chunk to copy, and the first row of its tile
    int          load_tile  = blockIdx.x + (warp / n_chunks)*gridDim.x;
    int          load_chunk = warp % n_chunks;

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

    const auto load = [&](const int stage) {
        if (load_tile < args.n_tiles) {
            const int    part = glu && load_chunk >= args.n_chunks ? 1 : 0;
            const char * x    = first_row(load_tile, part) + (load_chunk - part*args.n_chunks)*T::BYTES;

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

        load_chunk += MMFQ_WARPS;
        while (load_chunk >= n_chunks) {
            load_chunk -= n_chunks;
            load_tile  += gridDim.x;
        }
    };

    // The weights do not depend on the kernel before this one: read them while it ends.
    if (!args.x_is_constant) {
        ggml_cuda_pdl_sync();
    }
#pragma unroll
    for (int stage = 0; stage < T::STAGES; ++stage) {
        load(stage);
    }
    if (args.x_is_constant) {
        ggml_cuda_pdl_sync();
    }

    using src1 = typename T::template src1<NT>;
    const src1 * y = (const src1 *) args.y;

    int chunk = warp; // the next one to multiply, counted from the first of the tile
    int stage = 0;
    int first = 0;    // the warp that has the first chunk of the tile

    for (int tile = blockIdx.x; tile < args.n_tiles; tile += gridDim.x) {
        mmfq_sums<NT> sums[n_parts];

        while (chunk < n_chunks) {
            mmfq_wait<T::STAGES - 1>();
            __syncwarp();

            const int    part = glu && chunk >= args.n_chunks ? 1 : 0;
            const int    c    = chunk - part*args.n_chunks;
            const char * x    = ring + stage*stage_size + (lane/4)*T::STRIDE;
            const auto mul = [&](mmfq_sums<NT> & s) {
                if constexpr (T::COPY != T::BYTES) {
                    const uintptr_t from = (uintptr_t) first_row(tile, part) + c*T::BYTES + (lane/4)*args.row_size;
                    T::template mul<NT>(s, x + from % 16, x + 8*T::STRIDE + (from + 8*args.row_size) % 16, y + c*(T::K/32), lane);
                } else {
                    T::template mul<NT>(s, x, y + c*(T::K/32), lane);
                }
            };
            if constexpr (glu) {
                mmfq_sums<NT> s = part == 0 ? sums[0] : sums[1];
                mul(s);
                if (part == 0) {
                    sums[0] = s;
                } else {
                    sums[1] = s;
                }
            } else {
                mul(sums[0]);
            }

            __syncwarp();
            load(stage);
            stage  = stage + 1 == T::STAGES ? 0 : stage + 1;
            chunk += MMFQ_WARPS;
        }
        chunk -= n_chunks;

        const int row = threadIdx.x % MMFQ_ROWS;
        const int col = threadIdx.x / MMFQ_ROWS;

        float result[n_parts] = {};
#pragma unroll
        for (int part = 0; part < n_parts; ++part) {
            __syncthreads(); // the sums before these have been read
            float * p = partial + warp*8*NT*MMFQ_STRIDE_COL + 2*(lane % 4)*MMFQ_STRIDE_COL + lane/4;
#pragma unroll
            for (int n = 0; n < NT; ++n) {
                p[(8*n + 0)*MMFQ_STRIDE_COL + 0] = sums[part].v[n][0];
                p[(8*n + 1)*MMFQ_STRIDE_COL + 0] = sums[part].v[n][1];
                p[(8*n + 0)*MMFQ_STRIDE_COL + 8] = sums[part].v[n][2];
                p[(8*n + 1)*MMFQ_STRIDE_COL + 8] = sums[part].v[n][3];
            }
            __syncthreads();
            if (col < 8*NT) {
#pragma unroll
                for (int i = 0; i < MMFQ_WARPS; ++i) {
                    const int w = (first + part*args.n_chunks + i) % MMFQ_WARPS;
                    const float sum = partial[w*8*NT*MMFQ_STRIDE_COL + col*MMFQ_STRIDE_COL + row];
                    if (i < args.n_chunks) {
                        result[part] += sum;
                    }
                }
            }
        }
        first = (first + n_chunks) % MMFQ_WARPS;

        if (col < args.n_cols) {
            if constexpr (glu) {
                args.matrix[0].dst[col*args.matrix[0].stride_dst + tile*MMFQ_ROWS + row] = result[0]*ggml_cuda_op_silu_single(result[1]);
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
                dst[i] = args.add ? result[0] + args.add[col*args.stride_add + i] : result[0];
            }
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

    float sum = 0.0f;
    for (int i = threadIdx.x; i < n/4; i += blockDim.x) {
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
        const float4 v = x4[i];
        const float4 w = w4[i];
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

template <ggml_type type, int NT, bool glu>
static void mmfq_launch(const mmfq_args & args, const int device, cudaStream_t stream) {
    constexpr int nbytes = mmfq_shared_size<type, NT>();
    CUDA_SET_SHARED_MEMORY_LIMIT((mul_mat_few_q<type, NT, glu>), nbytes);

    const int  n_blocks = std::min(args.n_tiles, ggml_cuda_info().devices[device].nsm);
    const dim3 threads(MMFQ_WARPS*32, 1, 1);
    const ggml_cuda_kernel_launch_params params(dim3(n_blocks, 1, 1), threads, nbytes, stream);
    ggml_cuda_kernel_launch(mul_mat_few_q<type, NT, glu>, params, args);
}

template <ggml_type type>
static void mmfq_launch(const mmfq_args & args, const bool one_tile, const bool glu, const int device, cudaStream_t stream) {
    if (one_tile) {
        if (glu) {
            mmfq_launch<type, 1, true >(args, device, stream);
        } else {
            mmfq_launch<type, 1, false>(args, device, stream);
        }
    } else {
        if (glu) {
            mmfq_launch<type, 2, true >(args, device, stream);
        } else {
            mmfq_launch<type, 2, false>(args, device, stream);
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

bool ggml_cuda_should_use_mmfq(const ggml_tensor * dst, const int cc) {
    const ggml_tensor * src0 = dst->src[0];
    const ggml_tensor * src1 = dst->src[1];

    if (!ampere_mma_available(cc) || !cp_async_available(cc)) {
        return false;
    }
    bool fits = false;
    const bool known = mmfq_visit(src0->type, [&](auto t, auto type) {
        fits = src0->ne[0] % decltype(t)::K == 0 &&
            (size_t) mmfq_shared_size<decltype(type)::value, 2>() <= ggml_cuda_info().devices[ggml_cuda_get_device()].smpbo;
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
    mmfq_visit(src0->type, [&](auto t, auto type) {
        args.n_chunks = src0->ne[0]/decltype(t)::K;
        for (int64_t col = 0; col < src1->ne[1]; col += MMFQ_COLS) {
            args.n_cols = std::min<int64_t>(src1->ne[1] - col, MMFQ_COLS);
            mmfq_launch<decltype(type)::value>(args, src1->ne[1] <= 8, glu, ctx.device, ctx.stream());

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
