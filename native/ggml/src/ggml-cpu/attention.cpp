// Flash attention for any number of rows: the keys in chunks of 128 from the first on, each chunk by itself, then the
// chunks one into the other in their order. How many rows, heads and threads share the work decides who computes a
// chunk and when, never how: a row has the same bits in a step of its own, in a verify and in a prompt. Sums are kept
// in 32 bits.

#include "attention.h"

#include "ggml-cpu.h"
#include "lanes.h"
#include "vec.h"

#include <algorithm>
#include <cmath>

#if defined(GGML_CPU_LANES)

namespace {

constexpr int k_keys = 128; // of a chunk
constexpr int k_rows = 16;  // at a time, of heads and tokens that share keys

// What some keys give to a row: sum of values by weight, sum of weights, and the score that weights are relative to.
struct part {
    float largest, weight; // largest is -infinity: no key was seen
};

struct problem {
    const ggml_tensor * q, * k, * v, * mask;
    ggml_tensor *       dst;
    int64_t dk, dv, n_keys, n_tokens, n_heads, n_shared; // heads that share keys
    int64_t n_rows, n_groups, n_chunks;                  // rows of a group: those that share keys
    float   scale;

    explicit problem(const ggml_tensor * op) :
        q(op->src[0]), k(op->src[1]), v(op->src[2]), mask(op->src[3]), dst(const_cast<ggml_tensor *>(op)),
        dk(k->ne[0]), dv(v->ne[0]), n_keys(k->ne[1]), n_tokens(q->ne[1]), n_heads(q->ne[2]), n_shared(q->ne[2] / k->ne[2]),
        n_rows(n_tokens * n_shared), n_groups(k->ne[2] * q->ne[3]), n_chunks((n_keys + k_keys - 1) / k_keys) {
        std::memcpy(&scale, op->op_params, sizeof(scale));
    }
    int64_t token(int64_t row) const             { return row / n_shared; }
    int64_t head(int64_t group, int64_t row) const { return group % k->ne[2] * n_shared + row % n_shared; }
    int64_t batch(int64_t group) const           { return group / k->ne[2]; }
    // floats that a row's sums take
    int64_t n_part() const { return dv + 2; }
};

// Floats of one thread: scores, a mask, a chunk's sums and the sums so far.
int64_t n_scratch(int64_t dv) {
    return k_rows * k_keys + k_keys + 2 * k_rows * dv + 16;
}

// Rows of a group that are computed at a time. As many as fit, but enough items for all threads.
int64_t rows_at_a_time(const problem & p, int n_threads) {
    int64_t n = k_rows;
    while (n > p.n_shared && (p.n_rows + n - 1) / n * p.n_groups < 2 * n_threads) { n /= 2; }
    return std::max<int64_t>(1, n);
}

// Too few rows for all threads: then they share the keys.
bool splits_keys(const problem & p, int n_threads) {
    const int64_t n = rows_at_a_time(p, n_threads);
    return p.n_chunks > 1 && (p.n_rows + n - 1) / n * p.n_groups < n_threads;
}

// sums[j] = the sum over n keys of weights[j][key] times the values of the key, for M rows. 
template <int M, typename T>
ALWAYS_INLINE void weigh(int64_t dv, int n, const float * weights, const char * v, size_t nb_v, float * sums) {
    const auto columns = [&](auto width, int64_t at) {
        constexpr int W = decltype(width)::value;
        fvec acc[M][W];
        for (int j = 0; j < M; ++j) {
            for (int c = 0; c < W; ++c) { acc[j][c] = zeros(); }
        }
        for (int key = 0; key < n; ++key) {
            const T * values = (const T *) (v + key * nb_v) + at;
            fvec x[W];
            for (int c = 0; c < W; ++c) { x[c] = load(values + c * L); }
            for (int j = 0; j < M; ++j) {
                const fvec w = everywhere(weights[j * k_keys + key]);
                for (int c = 0; c < W; ++c) { acc[j][c] = plus_times(acc[j][c], w, x[c]); }
            }
        }
        for (int j = 0; j < M; ++j) {
            for (int c = 0; c < W; ++c) { store(sums + j * dv + at + c * L, acc[j][c]); }
        }
    };
    int64_t at = 0;
    for (; at + 2 * L <= dv; at += 2 * L) { columns(std::integral_constant<int, 2>(), at); }
    for (; at < dv; at += L)              { columns(std::integral_constant<int, 1>(), at); }
}

// One chunk of keys for rows `first` to `first + n - 1` of a group. False: all of them are masked.
template <typename T>
bool chunk_sums(const problem & p, int64_t group, int64_t first, int n, int64_t chunk, float * scratch, part * parts, float * sums) {
    float * scores = scratch, * masked = scratch + k_rows * k_keys;
    const int64_t begin = chunk * k_keys, batch = p.batch(group), kv_head = group % p.k->ne[2];
    const int     keys  = int(std::min<int64_t>(k_keys, p.n_keys - begin));
    const auto mask_of = [&](int row) {
        const int64_t head = p.head(group, first + row);
        return (const ggml_fp16_t *) ((const char *) p.mask->data + p.token(first + row) * p.mask->nb[1] +
            head % p.mask->ne[2] * p.mask->nb[2] + batch % p.mask->ne[3] * p.mask->nb[3]) + begin;
    };
    if (p.mask) {
        constexpr uint16_t minus_infinity = 0xFC00;
        bool seen = false;
        for (int row = 0; row < n && !seen; ++row) {
            const ggml_fp16_t * m = mask_of(row);
            seen = std::any_of(m, m + keys, [](ggml_fp16_t x) { return x != minus_infinity; });
        }
        if (!seen) {
            return false;
        }
    }

    const char * k = (const char *) p.k->data + begin * p.k->nb[1] + kv_head * p.k->nb[2] + batch / (p.q->ne[3] / p.k->ne[3]) * p.k->nb[3];
    const char * v = (const char *) p.v->data + begin * p.v->nb[1] + kv_head * p.v->nb[2] + batch / (p.q->ne[3] / p.v->ne[3]) * p.v->nb[3];
    const float * queries[k_rows];
    for (int row = 0; row < n; ++row) {
        queries[row] = (const float *) ((const char *) p.q->data + p.token(first + row) * p.q->nb[1] + p.head(group, first + row) * p.q->nb[2] + batch * p.q->nb[3]);
    }
    for (int key = 0; key < keys; key += 4) {
        const T * a[4];
        for (int i = 0; i < 4; ++i) { a[i] = (const T *) (k + std::min(key + i, keys - 1) * p.k->nb[1]); }
        in_pieces(n, k_beside, [&](int from, int to) {
            dots(p.dk, std::min(4, keys - key), a, to - from, queries + from, scores + from * k_keys + key, k_keys);
        });
    }

    for (int row = 0; row < n; ++row) {
        float * s = scores + row * k_keys;
        std::fill(s + keys, s + k_keys, -INFINITY);
        if (p.mask) {
            ggml_cpu_fp16_to_fp32(mask_of(row), masked, keys);
            for (int i = 0; i < keys; i++) { s[i] = s[i] * p.scale + masked[i]; }
        } else {
            for (int i = 0; i < keys; i++) { s[i] = s[i] * p.scale; }
        }
        float largest = -INFINITY;
        ggml_vec_max_f32(k_keys, &largest, s);
        parts[row].largest = largest;
        if (largest == -INFINITY) {
            parts[row].weight = 0;
            std::fill(s, s + k_keys, 0.0f);
        } else {
            parts[row].weight = float(ggml_vec_soft_max_f32(k_keys, s, s, largest));
        }
    }
    for (int row = 0; row < n;) {
        const auto with = [&](auto m) {
            weigh<decltype(m)::value, T>(p.dv, keys, scores + row * k_keys, v, p.v->nb[1], sums + row * p.dv);
            row += m;
        };
        switch (std::min(4, n - row)) {
            case 1:  with(std::integral_constant<int, 1>()); break;
            case 2:  with(std::integral_constant<int, 2>()); break;
            case 3:  with(std::integral_constant<int, 3>()); break;
            default: with(std::integral_constant<int, 4>()); break;
        }
    }
    return true;
}

// The sums of one more chunk into those of the chunks before it.
void merge(int64_t dv, part & all, float * sums, const part & one, const float * more) {
    if (one.largest == -INFINITY) {
        return;
    }
    const float largest = std::max(all.largest, one.largest);
    const float before = std::exp(all.largest - largest), now = std::exp(one.largest - largest);
    const fvec x = everywhere(before), y = everywhere(now);
    for (int64_t i = 0; i < dv; i += L) {
        store(sums + i, plus_times(times(load(sums + i), x), load(more + i), y));
    }
    all.weight  = all.weight * before + one.weight * now;
    all.largest = largest;
}

void finish(const problem & p, int64_t group, int64_t row, const part & all, const float * sums) {
    float * out = (float *) ((char *) p.dst->data + p.head(group, row) * p.dst->nb[1] + p.token(row) * p.dst->nb[2] + p.batch(group) * p.dst->nb[3]);
    const fvec share = everywhere(all.weight == 0 ? 0.0f : 1.0f / all.weight);
    for (int64_t i = 0; i < p.dv; i += L) {
        store(out + i, times(load(sums + i), share));
    }
}

template <typename T> void attention(const ggml_compute_params * params, ggml_tensor * dst) {
    const problem p(dst);
    const int64_t at_a_time = rows_at_a_time(p, params->nth), blocks = (p.n_rows + at_a_time - 1) / at_a_time;
    const bool split = splits_keys(p, params->nth);
    float * scratch = (float *) params->wdata + params->ith * n_scratch(p.dv);
    float * sums    = scratch + k_rows * k_keys + k_keys, * all = sums + k_rows * p.dv;
    float * shared  = (float *) params->wdata + params->nth * n_scratch(p.dv);
    const auto slot = [&](int64_t group, int64_t row, int64_t chunk) { return shared + ((group * p.n_rows + row) * p.n_chunks + chunk) * p.n_part(); };

    if (!params->prepared) {
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, 0);
        }
        ggml_barrier(params->threadpool);
    }

    const int64_t n_items = blocks * p.n_groups * (split ? p.n_chunks : 1);
    for (int64_t item; (item = ggml_threadpool_chunk_add(params->threadpool, 1)) < n_items;) {
        const int64_t block = item % blocks, group = item / blocks % p.n_groups, own = item / blocks / p.n_groups;
        const int64_t first = block * at_a_time;
        const int     n     = int(std::min(at_a_time, p.n_rows - first));
        part total[k_rows], parts[k_rows];
        for (int row = 0; row < n; ++row) {
            total[row] = parts[row] = { -INFINITY, 0.0f };
        }
        if (split) {
            const bool any = chunk_sums<T>(p, group, first, n, own, scratch, parts, sums);
            for (int row = 0; row < n; ++row) {
                float * to = slot(group, first + row, own);
                std::memcpy(to + p.dv, &parts[row], sizeof(part));
                if (any) {
                    std::memcpy(to, sums + row * p.dv, p.dv * sizeof(float));
                }
            }
            continue;
        }
        std::fill(all, all + n * p.dv, 0.0f);
        for (int64_t chunk = 0; chunk < p.n_chunks; ++chunk) {
            if (chunk_sums<T>(p, group, first, n, chunk, scratch, parts, sums)) {
                for (int row = 0; row < n; ++row) { merge(p.dv, total[row], all + row * p.dv, parts[row], sums + row * p.dv); }
            }
        }
        for (int row = 0; row < n; ++row) { finish(p, group, first + row, total[row], all + row * p.dv); }
    }
    if (!split) {
        return;
    }
    ggml_barrier(params->threadpool);
    for (int64_t i = params->ith; i < p.n_groups * p.n_rows; i += params->nth) {
        const int64_t group = i / p.n_rows, row = i % p.n_rows;
        part total = { -INFINITY, 0.0f };
        std::fill(all, all + p.dv, 0.0f);
        for (int64_t chunk = 0; chunk < p.n_chunks; ++chunk) {
            const float * from = slot(group, row, chunk);
            part one;
            std::memcpy(&one, from + p.dv, sizeof(part));
            merge(p.dv, total, all, one, from);
        }
        finish(p, group, row, total, all);
    }
}

bool takes(const ggml_tensor * op) {
    const ggml_tensor * q = op->src[0], * k = op->src[1], * v = op->src[2], * mask = op->src[3];
    float max_bias, softcap;
    std::memcpy(&max_bias, op->op_params + 1, sizeof(float));
    std::memcpy(&softcap,  op->op_params + 2, sizeof(float));
    bool type = k->type == GGML_TYPE_F32;
#if defined(GGML_CPU_LANES_F16)
    type |= k->type == GGML_TYPE_F16;
#endif
    return type && v->type == k->type && q->type == GGML_TYPE_F32 && (!mask || mask->type == GGML_TYPE_F16) &&
        !op->src[4] && max_bias == 0 && softcap == 0 && v->ne[0] % L == 0 && k->ne[2] == v->ne[2] &&
        q->nb[0] == sizeof(float) && k->nb[0] == ggml_type_size(k->type) && v->nb[0] == ggml_type_size(v->type);
}

} // namespace

#endif // GGML_CPU_LANES

bool ggml_cpu_attention(const ggml_compute_params * params, ggml_tensor * dst) {
#if defined(GGML_CPU_LANES)
    if (params->use_ref || !takes(dst)) {
        return false;
    }
    if (dst->src[1]->type == GGML_TYPE_F32) {
        attention<float>(params, dst);
    } else {
#if defined(GGML_CPU_LANES_F16)
        attention<ggml_fp16_t>(params, dst);
#endif
    }
    return true;
#else
    GGML_UNUSED(params);
    GGML_UNUSED(dst);
    return false;
#endif
}

bool ggml_cpu_attention_prepare(const ggml_compute_params * params, const ggml_tensor * op) {
#if defined(GGML_CPU_LANES)
    if (op->op == GGML_OP_FLASH_ATTN_EXT && !params->use_ref && takes(op)) {
        ggml_threadpool_chunk_set(params->threadpool, 0);
        return true;
    }
#else
    GGML_UNUSED(params);
    GGML_UNUSED(op);
#endif
    return false;
}

size_t ggml_cpu_attention_work_size(int n_threads, const ggml_tensor * dst) {
#if defined(GGML_CPU_LANES)
    if (!takes(dst)) {
        return 0;
    }
    const problem p(dst);
    int64_t n = n_threads * n_scratch(p.dv);
    for (int threads = 1; threads <= n_threads; ++threads) { // fewer may come
        if (splits_keys(p, threads)) {
            return (n + p.n_groups * p.n_rows * p.n_chunks * p.n_part()) * sizeof(float);
        }
    }
    return n * sizeof(float);
#else
    GGML_UNUSED(n_threads);
    GGML_UNUSED(dst);
    return 0;
#endif
}
