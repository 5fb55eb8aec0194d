// Vectors of floats for dense.cpp, attention.cpp and convolution.cpp, one set of names for each instruction set. Whatever
// is defined here computes lane by lane or adds lanes in one fixed order.

#pragma once

#include "ggml-cpu-impl.h"
#include "ggml-impl.h"

#include <cstdint>
#include <cstring>

#if defined(_MSC_VER)
#define ALWAYS_INLINE __forceinline
#else
#define ALWAYS_INLINE inline __attribute__((always_inline))
#endif

#if defined(__AVX512F__)

#define GGML_CPU_LANES 16
#define GGML_CPU_LANES_F16
#define GGML_CPU_LANES_BF16

namespace {

using fvec = __m512;

ALWAYS_INLINE fvec zeros()                                { return _mm512_setzero_ps(); }
ALWAYS_INLINE fvec everywhere(float x)                    { return _mm512_set1_ps(x); }
ALWAYS_INLINE fvec load(const float * p)                  { return _mm512_loadu_ps(p); }
ALWAYS_INLINE fvec load(const ggml_fp16_t * p)            { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p)); }
ALWAYS_INLINE fvec load(const ggml_bf16_t * p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *) p)), 16));
}
ALWAYS_INLINE void store(float * p, fvec a)               { _mm512_storeu_ps(p, a); }
ALWAYS_INLINE fvec times(fvec a, fvec b)                  { return _mm512_mul_ps(a, b); }
ALWAYS_INLINE fvec plus_times(fvec c, fvec a, fvec b)     { return _mm512_fmadd_ps(a, b, c); }
ALWAYS_INLINE __m128 quarter(fvec a) { // the sums of lanes that are four apart
    const __m256 x = _mm256_add_ps(_mm512_castps512_ps256(a), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
    return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}

} // namespace

#elif defined(__AVX__)

#define GGML_CPU_LANES 8

namespace {

using fvec = __m256;

ALWAYS_INLINE fvec zeros()                                { return _mm256_setzero_ps(); }
ALWAYS_INLINE fvec everywhere(float x)                    { return _mm256_set1_ps(x); }
ALWAYS_INLINE fvec load(const float * p)                  { return _mm256_loadu_ps(p); }
#if defined(__F16C__)
#define GGML_CPU_LANES_F16
ALWAYS_INLINE fvec load(const ggml_fp16_t * p)            { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p)); }
#endif
#if defined(__AVX2__)
#define GGML_CPU_LANES_BF16
ALWAYS_INLINE fvec load(const ggml_bf16_t * p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) p)), 16));
}
#endif
ALWAYS_INLINE void store(float * p, fvec a)               { _mm256_storeu_ps(p, a); }
ALWAYS_INLINE fvec times(fvec a, fvec b)                  { return _mm256_mul_ps(a, b); }
#if defined(__FMA__)
ALWAYS_INLINE fvec plus_times(fvec c, fvec a, fvec b)     { return _mm256_fmadd_ps(a, b, c); }
#else
ALWAYS_INLINE fvec plus_times(fvec c, fvec a, fvec b)     { return _mm256_add_ps(_mm256_mul_ps(a, b), c); }
#endif
ALWAYS_INLINE __m128 quarter(fvec a) { // the sums of lanes that are four apart
    return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
}

} // namespace

#elif defined(__ARM_NEON) && defined(__aarch64__)

#define GGML_CPU_LANES 4
#define GGML_CPU_LANES_F16
#define GGML_CPU_LANES_BF16

namespace {

using fvec = float32x4_t;

ALWAYS_INLINE fvec zeros()                                { return vdupq_n_f32(0.0f); }
ALWAYS_INLINE fvec everywhere(float x)                    { return vdupq_n_f32(x); }
ALWAYS_INLINE fvec load(const float * p)                  { return vld1q_f32(p); }
ALWAYS_INLINE fvec load(const ggml_fp16_t * p)            { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
ALWAYS_INLINE fvec load(const ggml_bf16_t * p)            { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *) p), 16)); }
ALWAYS_INLINE void store(float * p, fvec a)               { vst1q_f32(p, a); }
ALWAYS_INLINE fvec times(fvec a, fvec b)                  { return vmulq_f32(a, b); }
ALWAYS_INLINE fvec plus_times(fvec c, fvec a, fvec b)     { return vfmaq_f32(c, a, b); }
ALWAYS_INLINE float sum(fvec a)                           { return vaddvq_f32(a); }
ALWAYS_INLINE void sums(const fvec * a, float * out)      { vst1q_f32(out, vpaddq_f32(vpaddq_f32(a[0], a[1]), vpaddq_f32(a[2], a[3]))); }

} // namespace

#endif

#if defined(GGML_CPU_LANES)

namespace {

#if defined(__AVX__)

ALWAYS_INLINE float sum(fvec a) {
    __m128 x = quarter(a);
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

// Of four vectors, each as sum() adds it.
ALWAYS_INLINE void sums(const fvec * a, float * out) {
    const __m128 w = quarter(a[0]), x = quarter(a[1]), y = quarter(a[2]), z = quarter(a[3]);
    const __m128 wx = _mm_add_ps(_mm_movelh_ps(w, x), _mm_movehl_ps(x, w));
    const __m128 yz = _mm_add_ps(_mm_movelh_ps(y, z), _mm_movehl_ps(z, y));
    _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(wx, yz, _MM_SHUFFLE(2, 0, 2, 0)), _mm_shuffle_ps(wx, yz, _MM_SHUFFLE(3, 1, 3, 1))));
}

#endif

constexpr int L = GGML_CPU_LANES;

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int k_beside = 6; // rows that meet four others in registers
#else
constexpr int k_beside = 3;
#endif

// What is added up in one step: L products, or twice as many in pairs.
template <typename TA, typename TB> struct step {
    static constexpr int n = L;
    static ALWAYS_INLINE fvec plus(fvec c, fvec a, fvec b) { return plus_times(c, a, b); }
    static ALWAYS_INLINE fvec left(const TA * p)  { return load(p); }
    static ALWAYS_INLINE fvec right(const TB * p) { return load(p); }
};
#if defined(__AVX512BF16__)
template <> struct step<ggml_bf16_t, ggml_bf16_t> {
    static constexpr int n = 2 * L;
    static ALWAYS_INLINE fvec plus(fvec c, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(c, a, b); }
    static ALWAYS_INLINE __m512bh left(const ggml_bf16_t * p)  { return (__m512bh) _mm512_loadu_si512(p); }
    static ALWAYS_INLINE __m512bh right(const ggml_bf16_t * p) { return left(p); }
};
#endif

constexpr int64_t k_line = 64; // bytes of a line of a cache

ALWAYS_INLINE void fetch(const char * p) {
#if defined(_MSC_VER) && defined(__AVX__)
    _mm_prefetch(p, _MM_HINT_T0);
#elif defined(_MSC_VER)
    __prefetch(p);
#else
    __builtin_prefetch(p);
#endif
}

// What is fetched meanwhile: so many bytes in each step, from a place on.
struct ahead {
    const char * from  = nullptr;
    int64_t      bytes = 0;
};

// The dot products over k of M rows a with N rows b, c[j][i] for b[j] and a[i]. Each is one sum over k in steps, lane
// by lane, then over the lanes: nothing in it depends on M and N.
template <int M, int N, typename TA, typename TB>
ALWAYS_INLINE void dots(int64_t k, const TA * const * a, const TB * const * b, float (&c)[N][M], ahead next = {}) {
    using s = step<TA, TB>;
    fvec acc[N][M];
    for (int j = 0; j < N; ++j) {
        for (int i = 0; i < M; ++i) { acc[j][i] = zeros(); }
    }
    const auto add = [&](const TA * const * a, const TB * const * b, int64_t at) {
        decltype(s::right(b[0])) y[N];
        for (int j = 0; j < N; ++j) { y[j] = s::right(b[j] + at); }
        for (int i = 0; i < M; ++i) {
            const auto x = s::left(a[i] + at);
            for (int j = 0; j < N; ++j) { acc[j][i] = s::plus(acc[j][i], x, y[j]); }
        }
    };
    const int64_t whole = k / s::n * s::n;
    for (int64_t at = 0; at < whole; at += s::n) {
        if (next.from) {
            for (int64_t i = 0; i < next.bytes; i += k_line) { fetch(next.from + i); }
            next.from += next.bytes;
        }
        add(a, b, at);
    }
    if (whole < k) { // the rest with zeros behind it
        TA x[M][s::n] = {};
        TB y[N][s::n] = {};
        const TA * px[M];
        const TB * py[N];
        for (int i = 0; i < M; ++i) { px[i] = x[i]; std::memcpy((void *) x[i], a[i] + whole, (k - whole) * sizeof(TA)); }
        for (int j = 0; j < N; ++j) { py[j] = y[j]; std::memcpy((void *) y[j], b[j] + whole, (k - whole) * sizeof(TB)); }
        add(px, py, 0);
    }
    for (int j = 0; j < N; ++j) {
        int i = 0;
        for (; i + 4 <= M; i += 4) { sums(acc[j] + i, c[j] + i); }
        for (; i < M; ++i) { c[j][i] = sum(acc[j][i]); }
    }
}

// Of n_a <= M rows a with n_b <= k_beside rows b, into c + j * ldc + i. Rows too many repeat the last one.
template <int M, int N, typename TA, typename TB>
ALWAYS_INLINE void dots(int64_t k, int n_a, const TA * const * a, const TB * const * b, float * c, int64_t ldc, ahead next = {}) {
    float out[N][M];
    dots<M, N>(k, a, b, out, next);
    for (int j = 0; j < N; ++j) {
        if (n_a == M) {
            std::memcpy(c + j * ldc, out[j], sizeof out[j]);
        } else {
            for (int i = 0; i < n_a; ++i) { c[j * ldc + i] = out[j][i]; }
        }
    }
}

template <typename TA, typename TB>
void dots(int64_t k, int n_a, const TA * const * a, int n_b, const TB * const * b, float * c, int64_t ldc, ahead next = {}) {
    switch (n_b) {
        case 1: return dots<4, 1>(k, n_a, a, b, c, ldc, next);
        case 2: return dots<4, 2>(k, n_a, a, b, c, ldc, next);
        case 3: return dots<4, 3>(k, n_a, a, b, c, ldc, next);
#if defined(__AVX512F__) || defined(__aarch64__)
        case 4: return dots<4, 4>(k, n_a, a, b, c, ldc, next);
        case 5: return dots<4, 5>(k, n_a, a, b, c, ldc, next);
        case 6: return dots<4, 6>(k, n_a, a, b, c, ldc, next);
#endif
        default: GGML_ABORT("more rows than registers");
    }
}

// f(begin, end) for pieces of 0 to n, none above `most` and all about as large.
template <typename F> ALWAYS_INLINE void in_pieces(int n, int most, const F & f) {
    const int pieces = (n + most - 1) / most;
    for (int i = 0; i < pieces; ++i) { f(n * i / pieces, n * (i + 1) / pieces); }
}

} // namespace

#endif // GGML_CPU_LANES
