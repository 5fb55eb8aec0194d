// Gated delta net that can be rewound, see ggml_gated_delta_net_trace in ggml.h.
//
// The state is stored transposed: row j of a head holds column j of S, and rows do not depend on
// each other. So a few rows at a time are taken into registers, all tokens go over them, and they
// are written once: the old trace is committed, the state stored, the new tokens traced.

#include "ops.h"

#include "ggml-cpu-impl.h"
#include "simd-mappings.h"

#include <algorithm>
#include <cmath>

namespace {

// The sizeless vectors of SVE and RVV cannot lie in arrays: a machine with SVE has NEON too, RVV takes the scalar path.
#if defined(__ARM_NEON) && defined(__aarch64__)
constexpr int VL = 4;
using vec = float32x4_t;

inline vec   vec_load (const float * p)       { return vld1q_f32(p); }
inline void  vec_store(float * p, vec x)      { vst1q_f32(p, x); }
inline vec   vec_set  (float x)               { return vdupq_n_f32(x); }
inline vec   vec_mul  (vec x, vec y)          { return vmulq_f32(x, y); }
inline vec   vec_fma  (vec acc, vec x, vec y) { return vfmaq_f32(acc, x, y); }
inline float vec_sum  (vec x)                 { return vaddvq_f32(x); }
#elif defined(GGML_SIMD) && !defined(__ARM_FEATURE_SVE) && !defined(__riscv_v_intrinsic)
constexpr int VL = GGML_F32_EPR;
using vec = GGML_F32_VEC;

inline vec  vec_load (const float * p)      { return GGML_F32_VEC_LOAD(p); }
inline void vec_store(float * p, vec x)     { GGML_F32_VEC_STORE(p, x); }
inline vec  vec_set  (float x)              { return GGML_F32_VEC_SET1(x); }
inline vec  vec_mul  (vec x, vec y)         { return GGML_F32_VEC_MUL(x, y); }
inline vec  vec_fma  (vec acc, vec x, vec y) { return GGML_F32_VEC_FMA(acc, x, y); }

inline float vec_sum(vec x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps(x);
#else
    float lanes[VL];
    vec_store(lanes, x);
    for (int width = VL / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) {
            lanes[i] += lanes[i + width];
        }
    }
    return lanes[0];
#endif
}
#else
constexpr int VL = 1;
using vec = float;

inline vec   vec_load (const float * p)       { return *p; }
inline void  vec_store(float * p, vec x)      { *p = x; }
inline vec   vec_set  (float x)               { return x; }
inline vec   vec_mul  (vec x, vec y)          { return x * y; }
inline vec   vec_fma  (vec acc, vec x, vec y) { return std::fma(x, y, acc); }
inline float vec_sum  (vec x)                 { return x; }
#endif

constexpr int64_t TOKENS_PER_PASS = 32; // keys and queries of a pass stay in the first cache

// Tokens of one head: pointers to the first and floats from one token to the next.
struct head_tokens {
    int64_t       n = 0;
    const float * alpha = nullptr; // exp(gate): [n][G]
    const float * k = nullptr;     int64_t k_stride = 0;
    const float * q = nullptr;     int64_t q_stride = 0;
    const float * v = nullptr;     int64_t v_stride = 0;
    const float * beta = nullptr;  int64_t beta_stride = 0;
    float *       out = nullptr;   int64_t out_stride = 0;
    float *       u = nullptr;     int64_t u_stride = 0; // read by replay, written by trace
};

template <int S, int NJ, bool KDA>
struct rows {
    static constexpr int R = S / VL;

    vec s[NJ][R];

    void load(const float * state) {
        for (int jj = 0; jj < NJ; ++jj) {
            for (int r = 0; r < R; ++r) {
                s[jj][r] = vec_load(state + jj * S + r * VL);
            }
        }
    }

    void store(float * state) const {
        for (int jj = 0; jj < NJ; ++jj) {
            for (int r = 0; r < R; ++r) {
                vec_store(state + jj * S + r * VL, s[jj][r]);
            }
        }
    }

    // The two halves of S' = alpha S + k u^T. Replay and run share them, and with them the bits.
    void decay(const float * alpha, int r) {
        const vec a = KDA ? vec_load(alpha + r * VL) : vec_set(*alpha);
        for (int jj = 0; jj < NJ; ++jj) {
            s[jj][r] = vec_mul(s[jj][r], a);
        }
    }

    void update(vec k, const float * u, int r) {
        for (int jj = 0; jj < NJ; ++jj) {
            s[jj][r] = vec_fma(s[jj][r], k, vec_set(u[jj]));
        }
    }

    void replay(const head_tokens & tokens, int64_t j) {
        for (int64_t t = 0; t < tokens.n; ++t) {
            const float * k     = tokens.k + t * tokens.k_stride;
            const float * alpha = tokens.alpha + t * (KDA ? S : 1);
            const float * u     = tokens.u + t * tokens.u_stride + j;
            for (int r = 0; r < R; ++r) {
                decay(alpha, r);
                update(vec_load(k + r * VL), u, r);
            }
        }
    }

    void run(const head_tokens & tokens, int64_t j) {
        const float scale = 1.0f / sqrtf(float(S));
        for (int64_t t = 0; t < tokens.n; ++t) {
            const float * k     = tokens.k + t * tokens.k_stride;
            const float * q     = tokens.q + t * tokens.q_stride;
            const float * v     = tokens.v + t * tokens.v_stride + j;
            const float * alpha = tokens.alpha + t * (KDA ? S : 1);
            const float   beta  = tokens.beta[t * tokens.beta_stride];

            vec acc[NJ];
            std::fill(acc, acc + NJ, vec_set(0.0f));
            for (int r = 0; r < R; ++r) {
                decay(alpha, r);
                const vec kr = vec_load(k + r * VL);
                for (int jj = 0; jj < NJ; ++jj) {
                    acc[jj] = vec_fma(acc[jj], s[jj][r], kr);
                }
            }
            float u[NJ];
            for (int jj = 0; jj < NJ; ++jj) {
                u[jj]   = beta * (v[jj] - vec_sum(acc[jj]));
                acc[jj] = vec_set(0.0f);
            }
            for (int r = 0; r < R; ++r) {
                update(vec_load(k + r * VL), u, r);
                const vec qr = vec_load(q + r * VL);
                for (int jj = 0; jj < NJ; ++jj) {
                    acc[jj] = vec_fma(acc[jj], s[jj][r], qr);
                }
            }
            for (int jj = 0; jj < NJ; ++jj) {
                tokens.out[t * tokens.out_stride + j + jj] = vec_sum(acc[jj]) * scale;
                if (tokens.u) {
                    tokens.u[t * tokens.u_stride + j + jj] = u[jj];
                }
            }
        }
    }
};

// One pass over the state of a head: replay, commit, store, trace.
template <int S, bool KDA>
void pass(float * state, const head_tokens & replay, const head_tokens & commit, const head_tokens & trace) {
    // Rows that share the loads of keys and queries. With NEON what fits into 32 registers; wider vectors do better with
    // four rows that pass through the first level cache than with two beside each other.
    constexpr int NJ = VL == 4 ? (S >= 128 ? 1 : S >= 64 ? 2 : 4) : 4;
    for (int64_t j = 0; j < S; j += NJ) {
        rows<S, NJ, KDA> r;
        r.load(state + j * S);
        r.replay(replay, j);
        r.run(commit, j);
        if (replay.n > 0 || commit.n > 0) {
            r.store(state + j * S);
        }
        r.run(trace, j);
    }
}

using pass_fn = void (*)(float *, const head_tokens &, const head_tokens &, const head_tokens &);

template <bool KDA>
pass_fn pass_for(int64_t S) {
    switch (S) {
        case 16:  return pass<16,  KDA>;
        case 32:  return pass<32,  KDA>;
        case 64:  return pass<64,  KDA>;
        case 128: return pass<128, KDA>;
        default:  GGML_ABORT("gated_delta_net_trace: head size %d is not supported", (int) S);
    }
}

struct trace_op {
    const ggml_tensor * state, * trace, * replay, * q, * k, * v, * g, * beta;
    ggml_tensor *       dst;
    int64_t             S, H_v, H_k, G, n_tokens, n_trace;

    explicit trace_op(ggml_tensor * dst) :
        state(dst->src[0]), trace(dst->src[1]), replay(dst->src[2]), q(dst->src[3]), k(dst->src[4]),
        v(dst->src[5]), g(dst->src[6]), beta(dst->src[7]), dst(dst), S(v->ne[0]), H_v(v->ne[1]), H_k(k->ne[1]),
        G(g->ne[0]), n_tokens(v->ne[2]), n_trace(ggml_get_op_params_i32(dst, 0)) {}

    // Tokens [t0, t1) of the input of head `h`; their alphas go to `alpha`.
    head_tokens input(int64_t seq, int64_t h, int64_t t0, int64_t t1, float * alpha) const {
        head_tokens out;
        out.n = t1 - t0;
        if (out.n <= 0) {
            out.n = 0;
            return out;
        }
        const auto at = [&](const ggml_tensor * x, int64_t head) {
            return (float *) ((char *) x->data + seq * x->nb[3] + t0 * x->nb[2] + head * x->nb[1]);
        };
        const auto stride = [](const ggml_tensor * x) { return int64_t(x->nb[2] / sizeof(float)); };
        out.k    = at(k, h % H_k);  out.k_stride    = stride(k);
        out.q    = at(q, h % H_k);  out.q_stride    = stride(q);
        out.v    = at(v, h);        out.v_stride    = stride(v);
        out.beta = (const float *) beta->data + (seq * n_tokens + t0) * H_v + h;
        out.beta_stride = H_v;
        out.out  = at(dst, h);      out.out_stride  = stride(dst);
        exponents(alpha, (const float *) g->data + ((seq * n_tokens + t0) * H_v + h) * G, H_v * G, out.n);
        out.alpha = alpha;
        return out;
    }

    void exponents(float * alpha, const float * gate, int64_t stride, int64_t n) const {
        for (int64_t t = 0; t < n; ++t) {
            for (int64_t i = 0; i < G; ++i) {
                alpha[t * G + i] = expf(gate[t * stride + i]);
            }
        }
    }

    float * trace_u(int64_t seq, int64_t h) const {
        return (float *) ((char *) trace->data + seq * trace->nb[1]) + h * S;
    }
    float * trace_k(int64_t seq, int64_t half, int64_t h) const {
        return (float *) ((char *) trace->data + seq * trace->nb[1]) + n_trace * (H_v * S + half * H_k * S) + h * S;
    }
    float * trace_g(int64_t seq, int64_t half, int64_t h) const {
        return (float *) ((char *) trace->data + seq * trace->nb[1]) +
            n_trace * (H_v * S + 2 * H_k * S + half * H_v * G) + h * G;
    }

    void head(int64_t seq, int64_t h, float * work) const {
        const int32_t * wanted = (const int32_t *) replay->data + 2 * seq;
        const int64_t   half   = wanted[1];
        float * alpha_replay = work;
        float * alpha_commit = alpha_replay + n_trace * G;
        float * alpha_trace  = alpha_commit + TOKENS_PER_PASS * G;

        head_tokens old;
        old.n        = std::min<int64_t>(wanted[0], n_trace);
        old.alpha    = alpha_replay;
        old.k        = trace_k(seq, half, h % H_k);
        old.k_stride = H_k * S;
        old.u        = trace_u(seq, h);
        old.u_stride = H_v * S;
        exponents(alpha_replay, trace_g(seq, half, h), H_v * G, old.n);

        const pass_fn run = G == 1 ? pass_for<false>(S) : pass_for<true>(S);
        float * s = (float *) ((char *) state->data + seq * state->nb[3] + h * state->nb[2]);

        const int64_t n_commit = std::max<int64_t>(0, n_tokens - n_trace);
        int64_t done = 0;
        for (; n_commit - done > TOKENS_PER_PASS; done += TOKENS_PER_PASS) {
            run(s, old, input(seq, h, done, done + TOKENS_PER_PASS, alpha_commit), {});
            old.n = 0;
        }
        const head_tokens commit = input(seq, h, done, n_commit, alpha_commit);
        head_tokens       traced = input(seq, h, n_commit, n_tokens, alpha_trace);
        traced.u        = trace_u(seq, h);
        traced.u_stride = H_v * S;
        run(s, old, commit, traced);

        for (int64_t t = 0; t < traced.n; ++t) {
            if (h < H_k) {
                std::copy_n(traced.k + t * traced.k_stride, S, trace_k(seq, 1 - half, h) + t * H_k * S);
            }
            const float * gate = (const float *) g->data + ((seq * n_tokens + n_commit + t) * H_v + h) * G;
            std::copy_n(gate, G, trace_g(seq, 1 - half, h) + t * H_v * G);
        }
    }
};

} // namespace

size_t ggml_gated_delta_net_trace_work_size(const ggml_tensor * dst) {
    const int64_t G       = dst->src[6]->ne[0];
    const int64_t n_trace = ggml_get_op_params_i32(dst, 0);
    return sizeof(float) * ((2 * n_trace + TOKENS_PER_PASS) * G + CACHE_LINE_SIZE_F32);
}

void ggml_compute_forward_gated_delta_net_trace(const ggml_compute_params * params, ggml_tensor * dst) {
    const trace_op op(dst);
    const int64_t n_heads = op.H_v * op.v->ne[3];

    float * work = (float *) ((char *) params->wdata + params->ith * ggml_gated_delta_net_trace_work_size(dst));
    for (int64_t i = params->ith; i < n_heads; i += params->nth) {
        op.head(i / op.H_v, i % op.H_v, work);
    }
}
