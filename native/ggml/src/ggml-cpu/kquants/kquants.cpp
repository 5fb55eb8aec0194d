// Products with Q4_K, Q5_K, Q6_K and Q8_0 weights for any number of rows.
//
// Weights lie in tiles of as many columns as a vector has lanes. A group of a tile is unpacked once and met by up to
// 16 rows, whose sums stay in registers where they fit; what comes from memory is fetched ahead, or half of the time would be waiting.
// What a row gives does not depend on the rows beside it, bit for bit: a token has the same logits in a step of its
// own, in a verify of many and in a prompt, as far as these products go.

#include "kquants.h"

#ifdef GGML_USE_CPU_KQUANTS

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"
#include "ggml-quants.h"
#include "traits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#if defined(_MSC_VER)
#undef  ALWAYS_INLINE
#define ALWAYS_INLINE __forceinline
#endif

namespace {

constexpr int k_chunk = 64;   // rows that stay in the second level cache while the weights pass by
constexpr int k_ahead = 4096; // bytes
constexpr int k_piece = 65536; // bytes of weights that a thread takes at a time

// --- vectors -----------------------------------------------------------------

#if defined(__AVX512VNNI__)

using ivec = __m512i;
using fvec = __m512;
constexpr int L = 16; // lanes
constexpr int k_in_registers = 16; // rows

ALWAYS_INLINE ivec load(const void * p)                 { return _mm512_loadu_si512(p); }
ALWAYS_INLINE ivec bytes(int x)                         { return _mm512_set1_epi8(char(x)); }
ALWAYS_INLINE ivec number(int32_t x)                    { return _mm512_set1_epi32(x); }
ALWAYS_INLINE ivec both(ivec a, ivec b)                 { return _mm512_and_si512(a, b); }
ALWAYS_INLINE ivec either(ivec a, ivec b)               { return _mm512_or_si512(a, b); }
template <int n> ALWAYS_INLINE ivec left(ivec a)        { return _mm512_slli_epi16(a, n); }
template <int n> ALWAYS_INLINE ivec right(ivec a)       { return _mm512_srli_epi16(a, n); }
ALWAYS_INLINE ivec upper(ivec a)                        { return _mm512_slli_epi32(a, 16); }
ALWAYS_INLINE ivec widen(const int8_t * p)              { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *) p)); }
ALWAYS_INLINE fvec halves(const void * p)               { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p)); }
ALWAYS_INLINE fvec to_float(ivec a)                     { return _mm512_cvtepi32_ps(a); }
ALWAYS_INLINE fvec real(float x)                        { return _mm512_set1_ps(x); }
ALWAYS_INLINE fvec times(fvec a, fvec b)                { return _mm512_mul_ps(a, b); }
ALWAYS_INLINE fvec plus_times(fvec c, fvec a, fvec b)   { return _mm512_fmadd_ps(a, b, c); }
ALWAYS_INLINE fvec minus_times(fvec c, fvec a, fvec b)  { return _mm512_fnmadd_ps(a, b, c); }
ALWAYS_INLINE void store(float * p, fvec a)             { _mm512_storeu_ps(p, a); }
ALWAYS_INLINE fvec reals(const float * p)               { return _mm512_loadu_ps(p); }
// rounded, as bytes
ALWAYS_INLINE void store(int8_t * p, fvec a)            { _mm_storeu_si128((__m128i *) p, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a))); }
ALWAYS_INLINE ivec dot_words(ivec c, ivec a, ivec b)    { return _mm512_dpwssd_epi32(c, a, b); }
// c + a . b in each lane: a of four bytes without sign, b of four with
ALWAYS_INLINE ivec dot_bytes(ivec c, ivec a, ivec b)    { return _mm512_dpbusd_epi32(c, a, b); }

#else

using ivec = __m256i;
using fvec = __m256;
constexpr int L = 8;
constexpr int k_in_registers = 2;

ALWAYS_INLINE ivec load(const void * p)                 { return _mm256_loadu_si256((const __m256i *) p); }
ALWAYS_INLINE ivec bytes(int x)                         { return _mm256_set1_epi8(char(x)); }
ALWAYS_INLINE ivec number(int32_t x)                    { return _mm256_set1_epi32(x); }
ALWAYS_INLINE ivec both(ivec a, ivec b)                 { return _mm256_and_si256(a, b); }
ALWAYS_INLINE ivec either(ivec a, ivec b)               { return _mm256_or_si256(a, b); }
template <int n> ALWAYS_INLINE ivec left(ivec a)        { return _mm256_slli_epi16(a, n); }
template <int n> ALWAYS_INLINE ivec right(ivec a)       { return _mm256_srli_epi16(a, n); }
ALWAYS_INLINE ivec upper(ivec a)                        { return _mm256_slli_epi32(a, 16); }
ALWAYS_INLINE ivec widen(const int8_t * p)              { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *) p)); }
ALWAYS_INLINE fvec halves(const void * p)               { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p)); }
ALWAYS_INLINE fvec to_float(ivec a)                     { return _mm256_cvtepi32_ps(a); }
ALWAYS_INLINE fvec real(float x)                        { return _mm256_set1_ps(x); }
ALWAYS_INLINE fvec times(fvec a, fvec b)                { return _mm256_mul_ps(a, b); }
ALWAYS_INLINE fvec plus_times(fvec c, fvec a, fvec b)   { return _mm256_fmadd_ps(a, b, c); }
ALWAYS_INLINE fvec minus_times(fvec c, fvec a, fvec b)  { return _mm256_fnmadd_ps(a, b, c); }
ALWAYS_INLINE void store(float * p, fvec a)             { _mm256_storeu_ps(p, a); }
ALWAYS_INLINE fvec reals(const float * p)               { return _mm256_loadu_ps(p); }
ALWAYS_INLINE void store(int8_t * p, fvec a) {
    const __m256i v = _mm256_cvtps_epi32(a);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *) p, _mm_packs_epi16(words, words));
}
ALWAYS_INLINE ivec dot_words(ivec c, ivec a, ivec b)    { return _mm256_add_epi32(c, _mm256_madd_epi16(a, b)); }
#if defined(__AVXVNNI__)
ALWAYS_INLINE ivec dot_bytes(ivec c, ivec a, ivec b)    { return _mm256_dpbusd_avx_epi32(c, a, b); }
#else
ALWAYS_INLINE ivec pairs(ivec a, ivec b)                { return _mm256_maddubs_epi16(a, b); } // a without sign, b with
ALWAYS_INLINE ivec plus_words(ivec a, ivec b)           { return _mm256_add_epi16(a, b); }
ALWAYS_INLINE ivec plus_pairs(ivec c, ivec words)       { return dot_words(c, words, _mm256_set1_epi16(1)); }
ALWAYS_INLINE ivec absolute(ivec a)                     { return _mm256_abs_epi8(a); }
ALWAYS_INLINE ivec with_sign(ivec a, ivec of)           { return _mm256_sign_epi8(a, of); }
#endif

#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define HAVE_DOT_BYTES
#endif

// Four bytes or two words from anywhere, in every lane.
ALWAYS_INLINE ivec everywhere(const void * p) {
    int32_t x;
    memcpy(&x, p, sizeof(x));
    return number(x);
}

// f(0), f(1), ... f(n - 1) with constants for arguments
template <int... i, typename F> ALWAYS_INLINE void each(std::integer_sequence<int, i...>, const F & f) {
    (f(std::integral_constant<int, i>()), ...);
}
template <int n, typename F> ALWAYS_INLINE void each(const F & f) {
    each(std::make_integer_sequence<int, n>(), f);
}

// A block's groups are added up times their scales: sums that are whole numbers stay so where words are multiplied
// anyway, and become floats where bytes are.
#if defined(HAVE_DOT_BYTES)
using gsum = fvec;
ALWAYS_INLINE gsum no_groups()                          { return real(0); }
ALWAYS_INLINE gsum group_scale(ivec scale)              { return to_float(scale); }
ALWAYS_INLINE fvec to_float(gsum a)                     { return a; }
#else
using gsum = ivec;
ALWAYS_INLINE gsum no_groups()                          { return number(0); }
ALWAYS_INLINE gsum group_scale(ivec scale)              { return either(both(scale, number(0xFFFF)), upper(scale)); }
#endif

// Adds to `sum`, in each lane, `scale` times the sum of `offset` and of n vectors of four bytes a without sign times
// b(r). Words may overflow on the way: with the offset what is left fits, 8 times 32 times 127.
template <int n, typename F> ALWAYS_INLINE gsum plus_centred(gsum sum, gsum scale, ivec offset, const ivec * a, const F & b) {
#if defined(HAVE_DOT_BYTES)
    each<n>([&](auto r) { offset = dot_bytes(offset, a[r], b(r)); });
    return plus_times(sum, to_float(offset), scale);
#else
    each<n>([&](auto r) { offset = plus_words(offset, pairs(a[r], b(r))); });
    return dot_words(sum, offset, scale);
#endif
}

// Adds to `sum`, in each lane, `scale` times n vectors of four bytes a without sign, none above `most`, times b(r).
template <int n, int most, typename F> ALWAYS_INLINE gsum plus_group(gsum sum, gsum scale, const ivec * a, const F & b) {
#if defined(HAVE_DOT_BYTES)
    return plus_centred<n>(sum, scale, number(0), a, b);
#else
    constexpr int fit = 32767 / (most * 127 * 2); // sums of two products that a word can hold
    constexpr int run = fit < n ? fit : n;
    static_assert(n % run == 0);
    each<n / run>([&](auto i) {
        ivec words = pairs(a[i * run], b(std::integral_constant<int, i * run>()));
        each<run - 1>([&](auto r) { words = plus_words(words, pairs(a[i * run + r + 1], b(std::integral_constant<int, i * run + r + 1>()))); });
        sum = dot_words(sum, words, scale); // at most 16 groups of 16 x 63 x 127, times 128: it fits
    });
    return sum;
#endif
}

// --- tiles -------------------------------------------------------------------

// 256 activations of a row, sums of 32, and for each 16 what takes off that quants are 32 too large: -32 times their sum,
// or, where products are added up as words, of those that meet in the first and in the second word of a lane.
struct k_row {
    float   d;
    int8_t  qs[QK_K];
    int16_t sums[QK_K / 32];
    int32_t offsets[QK_K / 16];
};

// L columns, one block of 256 k. Quants have no sign: Q6_K's are 32 too large, which a group of activations knows, and
// what a column's minimum takes off goes through sums of 32 activations:
//   column = d * sum_g scale_g (quants_g . a_g) - dmin * sum_j min_j sum_j
// A group's quants are vectors of L times four consecutive k, in pairs: one in the low and one in the high nibbles.
// The bits above them follow for all groups, then scales, minima and factors, each for L columns.
template <typename block> struct layout;

template <> struct layout<block_q4_K> {
    static constexpr int k_group = 32, high_bits = 0, n_mins = 8;
};
template <> struct layout<block_q5_K> {
    static constexpr int k_group = 32, high_bits = 1, n_mins = 8;
};
template <> struct layout<block_q6_K> {
    static constexpr int k_group = 16, high_bits = 2, n_mins = 0;
};

template <typename block> struct tile : layout<block> {
    using layout<block>::k_group;
    using layout<block>::high_bits;
    using row = k_row;
    // Rows at a time: the most, and of `left` ones the next. With the quants of a group 16 do not fit into the registers,
    // and two times 8 are quicker.
    static constexpr int most_rows = L == 16 ? 12 : 16;
    static int64_t next_rows(int64_t left) { return left > most_rows && L == 16 ? 8 : std::min<int64_t>(left, most_rows); }

    static constexpr int k_block  = QK_K;
    static constexpr int most     = (16 << high_bits) - 1; // that a quant can be
    static constexpr int n_groups = QK_K / k_group;
    static constexpr int n_vecs   = k_group / 4; // of a group
    static constexpr int high     = L * QK_K / 2;
    static constexpr int scales   = high + L * QK_K * high_bits / 8;
    static constexpr int mins     = scales + L * n_groups;
    static constexpr int d        = mins + L * layout<block>::n_mins;
    static constexpr bool has_min = layout<block>::n_mins > 0;
    static constexpr int dmin     = d + L * int(sizeof(ggml_half));
    static constexpr int used     = dmin + (has_min ? L * int(sizeof(ggml_half)) : 0);
    static constexpr int size     = (used + 4 * L - 1) / (4 * L) * 4 * L; // whole vectors: none lies in two lines of the cache

    static ALWAYS_INLINE void quants(const char * t, int g, ivec * out) {
        const ivec low = bytes(0xF);
        each<n_vecs / 2>([&](auto r) {
            const ivec v = load(t + (g * n_vecs / 2 + r) * 4 * L);
            out[2 * r + 0] = both(v, low);
            out[2 * r + 1] = both(right<4>(v), low);
        });
        if constexpr (high_bits > 0) {
            // bits high_bits * r ... of each byte belong to vector r
            const ivec v = load(t + high + g * 4 * L), mask = bytes(high_bits == 1 ? 0x10 : 0x30);
            each<n_vecs>([&](auto r) {
                constexpr int shift = 4 - high_bits * r;
                if constexpr (shift >= 0) {
                    out[r] = either(out[r], both(left<shift>(v), mask));
                } else {
                    out[r] = either(out[r], both(right<-shift>(v), mask));
                }
            });
        }
    }
    static ALWAYS_INLINE gsum scale(const char * t, int g) {
        return group_scale(widen((const int8_t *) t + scales + g * L)); // 6 bits where it has no sign
    }
    // Minima 2 j and 2 j + 1, as two words.
    static ALWAYS_INLINE ivec min_pair(const char * t, int j) {
        const int8_t * m = (const int8_t *) t + mins + 2 * j * L; // 6 bits
        return either(widen(m), upper(widen(m + L)));
    }
};

// L columns, one block of 32 k: vectors of L times four consecutive k, then L factors. Where the processor multiplies
// bytes without sign by bytes with, quants are 128 too large, and a block of activations knows what that adds.
template <> struct tile<block_q8_0> {
    struct row {
        float   d;
        int32_t offset; // -128 times the sum
        int8_t  qs[QK8_0];
    };
    static constexpr int most_rows = 16;
    static int64_t next_rows(int64_t left) { return std::min<int64_t>(left, most_rows); }
    static constexpr int k_block = QK8_0;
    static constexpr int n_vecs  = QK8_0 / 4;
    static constexpr int d       = L * QK8_0;
    static constexpr int size    = d + L * int(sizeof(ggml_half));
};

// What a block holds, as bytes.
struct unpacked {
    uint8_t   quants[QK_K];
    int8_t    scales[16], mins[8];
    ggml_half d, dmin;
};

// Q4_K, and Q5_K, which has a fifth bit elsewhere. Scales and minima have six bits, the upper ones of the last four of
// each in the bytes of the first.
template <typename block> void unpack(const block & b, unpacked & out) {
    for (int j = 0; j < QK_K; j += 64) {
        for (int l = 0; l < 32; ++l) {
            int fifth = 0; // of the quants here and 32 further on
            if constexpr (tile<block>::high_bits == 1) {
                fifth = b.qh[l] >> (j / 32);
            }
            out.quants[j + l]      = (b.qs[j / 2 + l] & 0xF) | (fifth & 1) << 4;
            out.quants[j + l + 32] = (b.qs[j / 2 + l] >> 4)  | (fifth & 2) << 3;
        }
    }
    for (int j = 0; j < 4; ++j) {
        out.scales[j]     = b.scales[j] & 63;
        out.mins[j]       = b.scales[j + 4] & 63;
        out.scales[j + 4] = (b.scales[j + 8] & 0xF) | ((b.scales[j] >> 6) << 4);
        out.mins[j + 4]   = (b.scales[j + 8] >> 4) | ((b.scales[j + 4] >> 6) << 4);
    }
    out.d    = b.d;
    out.dmin = b.dmin;
}

void unpack(const block_q6_K & b, unpacked & out) {
    for (int j = 0; j < QK_K; j += 128) {
        for (int l = 0; l < 32; ++l) {
            const uint8_t * ql = b.ql + j / 2 + l;
            const int bits = b.qh[j / 4 + l];
            out.quants[j + l]      = (ql[0]  & 0xF) | (bits & 0x03) << 4;
            out.quants[j + l + 32] = (ql[32] & 0xF) | (bits & 0x0C) << 2;
            out.quants[j + l + 64] = (ql[0]  >> 4)  | (bits & 0x30);
            out.quants[j + l + 96] = (ql[32] >> 4)  | (bits & 0xC0) >> 2;
        }
    }
    memcpy(out.scales, b.scales, sizeof(out.scales));
    out.d = b.d;
}

// n_rows <= L rows of `stride` blocks each, one block of each, into a tile.
template <typename block> void pack(const block * from, int64_t stride, int n_rows, char * to) {
    using t = tile<block>;
    memset(to, 0, t::size);
    for (int n = 0; n < n_rows; ++n) {
        unpacked u;
        unpack(from[n * stride], u);
        for (int k = 0; k < QK_K; ++k) {
            const int vec = k / 4, byte = n * 4 + k % 4, g = k / t::k_group, r = k % t::k_group / 4;
            to[vec / 2 * 4 * L + byte] |= char((u.quants[k] & 0xF) << (vec % 2 * 4));
            if constexpr (t::high_bits > 0) {
                to[t::high + g * 4 * L + byte] |= char((u.quants[k] >> 4) << (t::high_bits * r));
            }
        }
        for (int g = 0; g < t::n_groups; ++g) {
            to[t::scales + g * L + n] = char(u.scales[g]);
        }
        for (int g = 0; g < t::n_mins; ++g) {
            to[t::mins + g * L + n] = char(u.mins[g]);
        }
        memcpy(to + t::d + n * sizeof(ggml_half), &u.d, sizeof(ggml_half));
        if constexpr (t::has_min) {
            memcpy(to + t::dmin + n * sizeof(ggml_half), &u.dmin, sizeof(ggml_half));
        }
    }
}

void pack(const block_q8_0 * from, int64_t stride, int n_rows, char * to) {
    using t = tile<block_q8_0>;
    memset(to, 0, t::size);
    for (int n = 0; n < n_rows; ++n) {
        const block_q8_0 & b = from[n * stride];
        for (int k = 0; k < QK8_0; ++k) {
#if defined(HAVE_DOT_BYTES)
            to[(k / 4 * L + n) * 4 + k % 4] = char(b.qs[k] ^ 0x80);
#else
            to[(k / 4 * L + n) * 4 + k % 4] = b.qs[k];
#endif
        }
        memcpy(to + t::d + n * sizeof(ggml_half), &b.d, sizeof(ggml_half));
    }
}

// --- product -----------------------------------------------------------------

// 16 activations: into the sum of 32, which they begin or end, and their offset, see k_row.
ALWAYS_INLINE void add_up(const int8_t * qs, int16_t & sum, int32_t & offset, bool begins) {
    __m128i words = _mm_maddubs_epi16(_mm_set1_epi8(1), _mm_loadu_si128((const __m128i *) qs));
    words = _mm_add_epi16(words, _mm_shuffle_epi32(words, 0x4E));
    words = _mm_add_epi16(words, _mm_shuffle_epi32(words, 0xB1)); // two sums of 8, beside each other
    const int32_t total = _mm_cvtsi128_si32(_mm_madd_epi16(words, _mm_set1_epi16(1)));
    sum = int16_t(begins ? total : sum + total);
#if defined(HAVE_DOT_BYTES)
    offset = -32 * total;
#else
    offset = _mm_cvtsi128_si32(_mm_mullo_epi16(words, _mm_set1_epi16(-32)));
#endif
}

// As quantize_row_q8_K_ref; where the largest value occurs with both signs, the positive one counts.
void quantize(const float * x, k_row * y, int64_t n_blocks) {
    for (int64_t i = 0; i < n_blocks; ++i, x += QK_K) {
        float high[L], low[L];
        memcpy(high, x, sizeof(high));
        memcpy(low,  x, sizeof(low));
        for (int j = L; j < QK_K; j += L) {
            for (int l = 0; l < L; ++l) {
                high[l] = x[j + l] > high[l] ? x[j + l] : high[l];
                low[l]  = x[j + l] < low[l]  ? x[j + l] : low[l];
            }
        }
        const float largest = *std::max_element(high, high + L), smallest = *std::min_element(low, low + L);
        const float extreme = largest >= -smallest ? largest : smallest;
        if (extreme == 0) {
            memset(&y[i], 0, sizeof(y[i]));
            continue;
        }
        const float iscale = -127.0f / extreme;
        for (int j = 0; j < QK_K; j += L) {
            store(y[i].qs + j, times(reals(x + j), real(iscale)));
        }
        for (int g = 0; g < QK_K / 16; ++g) {
            add_up(y[i].qs + g * 16, y[i].sums[g / 2], y[i].offsets[g], g % 2 == 0);
        }
        y[i].d = 1 / iscale;
    }
}

// By 32, as quantize_row_q8_0_ref but with a factor of 32 bits.
void quantize(const float * x, tile<block_q8_0>::row * y, int64_t n_blocks) {
    for (int64_t i = 0; i < n_blocks; ++i, x += QK8_0) {
        float largest[L] = {};
        for (int j = 0; j < QK8_0; j += L) {
            for (int l = 0; l < L; ++l) {
                const float v = std::fabs(x[j + l]);
                largest[l] = v > largest[l] ? v : largest[l];
            }
        }
        const float extreme = *std::max_element(largest, largest + L);
        y[i].d = extreme / 127.0f;
        const fvec scale = real(extreme > 0 ? 127.0f / extreme : 0.0f);
        int32_t sum = 0;
        for (int j = 0; j < QK8_0; j += L) {
            store(y[i].qs + j, times(reals(x + j), scale));
        }
        for (int j = 0; j < QK8_0; ++j) {
            sum += y[i].qs[j];
        }
        y[i].offset = -128 * sum;
    }
}

template <int M> ALWAYS_INLINE int64_t row_of(int m, int n_rows) {
    return M <= k_in_registers ? std::min(m, n_rows - 1) : m;
}

// f(m) for each of n_rows <= M rows, m a constant where the sums of M of them fit into the registers beside the quants;
// rows too many there are to repeat the last one.
template <int M, typename F> ALWAYS_INLINE void each_row(int n_rows, const F & f) {
    if constexpr (M <= k_in_registers) {
        each<M>(f);
    } else {
        for (int m = 0; m < n_rows; ++m) {
            f(m);
        }
    }
}

// Of n_rows <= M rows A {n_rows, n_blocks} with the L columns of n_blocks tiles; total {M, L}.
template <typename block, int M>
ALWAYS_INLINE void multiply(int n_rows, int n_blocks, const k_row * A, const char * B, fvec * total) {
    using t = tile<block>;
    constexpr int lines = (t::size / t::n_groups + 63) / 64; // of memory for a group

    for (int m = 0; m < M; ++m) {
        total[m] = real(0);
    }
    for (int i = 0; i < n_blocks; ++i, B += t::size) {
        const auto row = [&](int m) -> const k_row & { return A[row_of<M>(m, n_rows) * n_blocks + i]; };
        gsum acc[M];
        each_row<M>(n_rows, [&](auto m) { acc[m] = no_groups(); });
        for (int g = 0; g < t::n_groups; ++g) {
            for (int l = 0; l < lines; ++l) {
                _mm_prefetch(B + k_ahead + (g * lines + l) * 64, _MM_HINT_T0);
            }
            ivec quants[t::n_vecs];
            t::quants(B, g, quants);
            const gsum scale = t::scale(B, g);
            each_row<M>(n_rows, [&](auto m) {
                const int8_t * q = row(m).qs + g * t::k_group;
                const auto activations = [&](auto r) { return everywhere(q + 4 * r); };
                if constexpr (t::has_min) {
                    acc[m] = plus_group<t::n_vecs, t::most>(acc[m], scale, quants, activations);
                } else {
                    acc[m] = plus_centred<t::n_vecs>(acc[m], scale, everywhere(row(m).offsets + g), quants, activations);
                }
            });
        }
        const fvec d = halves(B + t::d);
        if constexpr (t::has_min) {
            ivec mins[4];
            each<4>([&](auto j) { mins[j] = t::min_pair(B, j); });
            const fvec dmin = halves(B + t::dmin);
            each_row<M>(n_rows, [&](auto m) {
                ivec sum = number(0);
                each<4>([&](auto j) { sum = dot_words(sum, mins[j], everywhere(row(m).sums + 2 * j)); });
                const fvec column = minus_times(times(to_float(acc[m]), d), to_float(sum), dmin);
                total[m] = plus_times(total[m], column, real(row(m).d));
            });
        } else {
            each_row<M>(n_rows, [&](auto m) { total[m] = plus_times(total[m], times(to_float(acc[m]), d), real(row(m).d)); });
        }
    }
}

template <typename block, int M>
ALWAYS_INLINE void multiply(int n_rows, int n_blocks, const tile<block_q8_0>::row * A, const char * B, fvec * total) {
    using t = tile<block_q8_0>;
    constexpr int lines = (t::size + 63) / 64;

    for (int m = 0; m < M; ++m) {
        total[m] = real(0);
    }
    for (int i = 0; i < n_blocks; ++i, B += t::size) {
        for (int l = 0; l < lines; ++l) {
            _mm_prefetch(B + k_ahead + l * 64, _MM_HINT_T0);
        }
        ivec quants[t::n_vecs];
#if defined(HAVE_DOT_BYTES)
        each<t::n_vecs>([&](auto r) { quants[r] = load(B + r * 4 * L); });
#else
        each<t::n_vecs>([&](auto r) { quants[r] = absolute(load(B + r * 4 * L)); });
#endif
        const fvec d = halves(B + t::d);
        each_row<M>(n_rows, [&](auto m) {
            const t::row & x = A[row_of<M>(m, n_rows) * n_blocks + i];
#if defined(HAVE_DOT_BYTES)
            ivec sum = number(x.offset);
            each<t::n_vecs>([&](auto r) { sum = dot_bytes(sum, quants[r], everywhere(x.qs + 4 * r)); });
#else
            ivec sum = number(0);
            each<t::n_vecs>([&](auto r) {
                sum = plus_pairs(sum, pairs(quants[r], with_sign(everywhere(x.qs + 4 * r), load(B + r * 4 * L))));
            });
#endif
            total[m] = plus_times(total[m], to_float(sum), times(d, real(x.d)));
        });
    }
}

// Into C {n_rows, n_columns <= L} of stride ldc.
template <typename block, int M>
void multiply(int n_rows, int n_blocks, const typename tile<block>::row * A, const char * B, float * C, int64_t ldc, int n_columns) {
    fvec total[M];
    multiply<block, M>(n_rows, n_blocks, A, B, total);
    for (int m = 0; m < n_rows; ++m) {
        if (n_columns == L) {
            store(C + m * ldc, total[m]);
        } else {
            float columns[L];
            store(columns, total[m]);
            memcpy(C + m * ldc, columns, n_columns * sizeof(float));
        }
    }
}

template <typename block>
void multiply(int n_rows, int n_blocks, const typename tile<block>::row * A, const char * B, float * C, int64_t ldc, int n_columns) {
    static constexpr int most = tile<block>::most_rows;
    const auto with = [&](auto m) { multiply<block, (m < most ? int(m) : most)>(n_rows, n_blocks, A, B, C, ldc, n_columns); };
    if constexpr (k_in_registers < most) {
        switch (n_rows) {
            case 1:                                     return with(std::integral_constant<int, 1>());
            case 2:                                     return with(std::integral_constant<int, 2>());
            default:                                    return with(std::integral_constant<int, most>());
        }
    } else {
        switch (n_rows) {
            case 1:                                     return with(std::integral_constant<int, 1>());
            case 2:                                     return with(std::integral_constant<int, 2>());
            case 3:                                     return with(std::integral_constant<int, 3>());
            case 4:                                     return with(std::integral_constant<int, 4>());
            case 5: case 6:                             return with(std::integral_constant<int, 6>());
            case 7: case 8:                             return with(std::integral_constant<int, 8>());
            case 9: case 10: case 11: case 12:          return with(std::integral_constant<int, 12>());
            default:                                    return with(std::integral_constant<int, most>());
        }
    }
}

template <typename block>
void quantize(const ggml_compute_params * params, const ggml_tensor * dst) {
    const ggml_tensor * w = dst->src[0], * x = dst->src[1];
    const int n_blocks = int(w->ne[0] / tile<block>::k_block);
    for (int64_t row = params->ith; row < ggml_nrows(x); row += params->nth) {
        quantize((const float *) x->data + row * w->ne[0], static_cast<typename tile<block>::row *>(params->wdata) + row * n_blocks, n_blocks);
    }
}

template <typename block>
void mul_mat(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * w = dst->src[0], * x = dst->src[1];
    const int     n_blocks = int(w->ne[0] / tile<block>::k_block);
    const int64_t n_rows   = ggml_nrows(x);
    const auto *  A        = static_cast<const typename tile<block>::row *>(params->wdata);

    if (!params->prepared) {
        quantize<block>(params, dst);
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, 0);
        }
        ggml_barrier(params->threadpool);
    }

    // Pieces for whoever is free: some for each thread, of as many weights as are read in some microseconds.
    const int64_t n_tiles  = (w->ne[1] + L - 1) / L;
    const int64_t in_piece = std::clamp<int64_t>(k_piece / int64_t(n_blocks * tile<block>::size), 1, std::max<int64_t>(1, n_tiles / (4 * params->nth)));
    const int64_t across   = (n_tiles + in_piece - 1) / in_piece, n_pieces = across * ((n_rows + k_chunk - 1) / k_chunk);
    for (int64_t piece; (piece = ggml_threadpool_chunk_add(params->threadpool, 1)) < n_pieces;) {
        const int64_t chunk = piece / across * k_chunk, end = std::min(chunk + k_chunk, n_rows);
        const int64_t first = piece % across * in_piece, last = std::min(first + in_piece, n_tiles);
        for (int64_t n = first; n < last; ++n) {
            for (int64_t m = chunk, at_once; m < end; m += at_once) {
                at_once = tile<block>::next_rows(end - m);
                multiply<block>(int(at_once), n_blocks, A + m * n_blocks,
                    (const char *) w->data + n * n_blocks * tile<block>::size, (float *) dst->data + m * w->ne[1] + n * L, w->ne[1],
                    int(std::min<int64_t>(L, w->ne[1] - n * L)));
            }
        }
    }
}

// n columns from `first` on, which begins a tile.
template <typename block> void set(ggml_tensor * w, int64_t first, int64_t n_columns, const void * data) {
    const int64_t n_blocks = w->ne[0] / tile<block>::k_block;
    const block * from = static_cast<const block *>(data);
    char * to = (char *) w->data + first / L * n_blocks * tile<block>::size;
    constexpr int k_few = 128; // tiles for which a thread is not worth its start: what a draft's head takes in is fewer
    const int n_tiles = int((n_columns + L - 1) / L);
    const auto pack_tiles = [&](int begin, int end) {
        for (int64_t n = begin; n < end; ++n) {
            const int n_rows = int(std::min<int64_t>(L, n_columns - n * L));
            for (int64_t i = 0; i < n_blocks; ++i) {
                pack(from + n * L * n_blocks + i, n_blocks, n_rows, to + (n * n_blocks + i) * tile<block>::size);
            }
        }
    };
    // Threads of its own: OpenMP's would wait for the next tensor by spinning, and a forked process would wait for them.
    const int n_threads = std::clamp(n_tiles / k_few, 1, std::max(1, int(std::thread::hardware_concurrency())));
    const auto begin_of = [&](int i) { return int(int64_t(n_tiles) * i / n_threads); };
    std::vector<std::thread> others;
    int n_begun = 1;
    try {
        others.reserve(n_threads - 1);
        for (; n_begun < n_threads; ++n_begun) {
            others.emplace_back(pack_tiles, begin_of(n_begun), begin_of(n_begun + 1));
        }
    } catch (const std::exception &) {
        // as many as there can be
    }
    pack_tiles(0, begin_of(1));
    pack_tiles(begin_of(n_begun), n_tiles);
    for (std::thread & other : others) {
        other.join();
    }
}

// Calls f with a null pointer to the block type. False: a type that is not ours.
template <typename F> bool with_block(ggml_type type, const F & f) {
    switch (type) {
        case GGML_TYPE_Q4_K: f((block_q4_K *) nullptr); return true;
        case GGML_TYPE_Q5_K: f((block_q5_K *) nullptr); return true;
        case GGML_TYPE_Q6_K: f((block_q6_K *) nullptr); return true;
        case GGML_TYPE_Q8_0: f((block_q8_0 *) nullptr); return true;
        default:             return false;
    }
}

// --- buffer type -------------------------------------------------------------

struct kquants_traits : ggml::cpu::tensor_traits {
    bool work_size(int, const ggml_tensor * op, size_t & size) override {
        return with_block(op->src[0]->type, [&](auto * b) {
            using t = tile<std::remove_pointer_t<decltype(b)>>;
            size = ggml_nrows(op->src[1]) * op->src[0]->ne[0] / t::k_block * sizeof(typename t::row);
        });
    }
    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        return op->op == GGML_OP_MUL_MAT && with_block(op->src[0]->type, [&](auto * b) {
            mul_mat<std::remove_pointer_t<decltype(b)>>(params, op);
        });
    }
};

struct kquants_buffer_type : ggml::cpu::extra_buffer_type {
    bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) override {
        const ggml_tensor * w = op->src[0], * x = op->src[1];
        return op->op == GGML_OP_MUL_MAT && get_tensor_traits(op) &&
            with_block(w->type, [](auto *) {}) && w->ne[2] == 1 && w->ne[3] == 1 &&
            x->type == GGML_TYPE_F32 && ggml_is_contiguous(x) && (!x->buffer || ggml_backend_buft_is_host(x->buffer->buft));
    }
    ggml::cpu::tensor_traits * get_tensor_traits(const ggml_tensor * op) override {
        static kquants_traits traits;
        const ggml_tensor * w = op->src[0];
        return op->op == GGML_OP_MUL_MAT && w->buffer && w->buffer->buft == ggml_backend_cpu_kquants_buffer_type() ? &traits : nullptr;
    }
};

void set_tensor(ggml_backend_buffer_t, ggml_tensor * w, const void * data, size_t offset, size_t size) {
    const int64_t first = int64_t(offset / w->nb[1]), n = int64_t(size / w->nb[1]);
    GGML_ASSERT(offset % w->nb[1] == 0 && size % w->nb[1] == 0 && first % L == 0 && (n % L == 0 || first + n == w->ne[1])); // whole tiles
    with_block(w->type, [&](auto * b) { set<std::remove_pointer_t<decltype(b)>>(w, first, n, data); });
}

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    if (buffer) {
        buffer->buft             = buft;
        buffer->iface.set_tensor = set_tensor;
        buffer->iface.get_tensor = nullptr;
        buffer->iface.cpy_tensor = nullptr;
    }
    return buffer;
}

size_t alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * w) {
    size_t size = ggml_nbytes(w);
    with_block(w->type, [&](auto * b) {
        using t = tile<std::remove_pointer_t<decltype(b)>>;
        size = (w->ne[1] + L - 1) / L * (w->ne[0] / t::k_block) * t::size;
    });
    return size;
}

} // namespace

ggml_backend_buffer_type_t ggml_backend_cpu_kquants_buffer_type(void) {
    static ggml_backend_buffer_type type = {
        /* .iface   = */ {
            /* .get_name       = */ [](ggml_backend_buffer_type_t) { return "CPU_KQUANTS"; },
            /* .alloc_buffer   = */ alloc_buffer,
            /* .get_alignment  = */ [](ggml_backend_buffer_type_t) -> size_t { return TENSOR_ALIGNMENT; },
            /* .get_max_size   = */ nullptr,
            /* .get_alloc_size = */ alloc_size,
            /* .is_host        = */ nullptr,
        },
        /* .device  = */ ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
        /* .context = */ new kquants_buffer_type(),
    };
    return &type;
}

static bool is_product(const ggml_tensor * op) {
    return op->op == GGML_OP_MUL_MAT && op->src[0]->buffer && op->src[0]->buffer->buft == ggml_backend_cpu_kquants_buffer_type();
}

// Products whose rows are quantized to the same bytes.
static bool has_same_rows(const ggml_tensor * a, const ggml_tensor * b) {
    return is_product(b) && a->src[1] == b->src[1] && (a->src[0]->type == GGML_TYPE_Q8_0) == (b->src[0]->type == GGML_TYPE_Q8_0);
}

bool ggml_cpu_kquants_prepare(const ggml_compute_params * params, const ggml_tensor * op, const ggml_tensor * before) {
    constexpr int64_t k_most = 16 * 1024; // values that one thread quantizes while others would come together
    if (!is_product(op)) {
        return false;
    }
    const bool is_quantized = before && has_same_rows(op, before);
    if (!is_quantized && ggml_nelements(op->src[1]) > k_most) {
        return false;
    }
    ggml_threadpool_chunk_set(params->threadpool, 0);
    return is_quantized || with_block(op->src[0]->type, [&](auto * b) { quantize<std::remove_pointer_t<decltype(b)>>(params, op); });
}

#else

bool ggml_cpu_kquants_prepare(const ggml_compute_params *, const ggml_tensor *, const ggml_tensor *) {
    return false;
}

#endif // GGML_USE_CPU_KQUANTS
