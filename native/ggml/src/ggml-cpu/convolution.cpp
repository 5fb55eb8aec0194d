// The short convolution before a delta net, for any number of tokens. A result is one sum over the kernel in one order,
// whatever tokens are beside it. Inputs lie token by token, results channel by channel: tokens share a vector, and
// squares of both turn in the first level cache.

#include "convolution.h"

#include "ggml-cpu.h"
#include "lanes.h"

#include <algorithm>
#include <cmath>

#if defined(GGML_CPU_LANES)

namespace {

constexpr int k_kernel   = 4;  // inputs of a result
constexpr int k_channels = 16; // of a square

#if defined(__AVX__) && !defined(__FMA__) && !defined(__AVX512F__)
ALWAYS_INLINE float plus_times(float c, float a, float b) { return c + a * b; }
#else
ALWAYS_INLINE float plus_times(float c, float a, float b) { return std::fma(a, b, c); }
#endif

ALWAYS_INLINE float one(const float * x, const float * kernel) {
    float sum = x[0] * kernel[0];
    for (int i = 1; i < k_kernel; ++i) { sum = plus_times(sum, x[i], kernel[i]); }
    return sum;
}

ALWAYS_INLINE fvec several(const float * x, const float * kernel) {
    fvec sum = times(load(x), everywhere(kernel[0]));
    for (int i = 1; i < k_kernel; ++i) { sum = plus_times(sum, load(x + i), everywhere(kernel[i])); }
    return sum;
}

// Channels begin to end - 1 of one sequence: x has `stride` floats a channel, y `n_channels` a token.
void convolve(int64_t begin, int64_t end, int64_t n_tokens, const float * x, int64_t stride, const float * kernels, float * y, int64_t n_channels) {
    constexpr int64_t k_few = 4; // tokens for which a square is not worth it
    const auto by_themselves = [&](int64_t from) {
        for (int64_t t = 0; t < n_tokens; ++t) {
            for (int64_t c = from; c < end; ++c) { y[t * n_channels + c] = one(x + c * stride + t, kernels + c * k_kernel); }
        }
    };
    // Of fewer tokens than lanes the others are those of the next channels: the last channels have none behind them.
    const int64_t last = n_channels - (L + k_kernel - 1 + stride - 1) / stride;
    const int64_t squares = n_tokens < k_few ? begin : n_tokens < L ? std::clamp(last, begin, end) : end;
    float square[k_channels][L];
    for (int64_t first = begin; first < squares; first += k_channels) {
        const int n = int(std::min<int64_t>(k_channels, squares - first));
        for (int64_t next = 0; next < n_tokens; next += L) {
            const int64_t at = std::max<int64_t>(0, std::min(next, n_tokens - L)); // the last ones once more, where they are fewer
            for (int c = 0; c < n; ++c) {
                store(square[c], several(x + (first + c) * stride + at, kernels + (first + c) * k_kernel));
            }
            for (int t = 0; t < std::min<int64_t>(L, n_tokens); ++t) {
                for (int c = 0; c < n; ++c) { y[(at + t) * n_channels + first + c] = square[c][t]; }
            }
        }
    }
    by_themselves(squares);
}

} // namespace

bool ggml_cpu_convolution(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * x = dst->src[0], * kernels = dst->src[1];
    if (params->use_ref || x->type != GGML_TYPE_F32 || kernels->type != GGML_TYPE_F32 || kernels->ne[0] != k_kernel ||
            x->nb[0] != sizeof(float) || x->nb[1] % sizeof(float) != 0 || !ggml_is_contiguous(kernels) || !ggml_is_contiguous(dst)) {
        return false;
    }
    const int64_t n_channels = x->ne[1], share = (n_channels + params->nth - 1) / params->nth;
    const int64_t begin = std::min(n_channels, share * params->ith), end = std::min(n_channels, begin + share);
    for (int64_t i = 0; i < dst->ne[2]; ++i) {
        convolve(begin, end, dst->ne[1], (const float *) ((const char *) x->data + i * x->nb[2]), int64_t(x->nb[1] / sizeof(float)),
            (const float *) kernels->data, (float *) ((char *) dst->data + i * dst->nb[2]), n_channels);
    }
    return true;
}

#else

bool ggml_cpu_convolution(const ggml_compute_params *, ggml_tensor *) {
    return false;
}

#endif // GGML_CPU_LANES
