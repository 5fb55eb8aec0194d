// Products with F32, F16 and BF16 weights for any number of rows. A result is one sum over k in one order, whatever
// rows, columns and threads are beside it: a token has the same bits in a step of its own, in a verify and in a prompt.

#include "dense.h"

#include "ggml-cpu.h"
#include "lanes.h"

#include <algorithm>
#include <type_traits>

#if defined(GGML_CPU_LANES)

namespace {

constexpr int64_t k_chunk   = 48;  // rows that stay in the second level cache while weights pass by
constexpr int64_t k_convert = 512; // values at a time
constexpr size_t  k_short   = 2048, k_ahead = 2048; // bytes

// One row reads each column once, and the time is that of the memory. Long columns beside each other are as many streams
// to the processor, which it fetches ahead by itself; in short ones it loses them. These come one behind the other: each
// by itself where its values need no conversion, else four together, whose bytes are fetched in the order of the memory.
template <typename T>
void multiply_one(int64_t k, int64_t begin, int64_t end, const char * w, size_t nb_w, const T * x, float * y) {
    const auto with = [&](auto columns, int64_t distance) {
        constexpr int M = decltype(columns)::value;
        for (int64_t i = begin; i < end; i += M) {
            const T * a[M];
            for (int c = 0; c < M; ++c) { a[c] = (const T *) (w + std::min(i + c, end - 1) * nb_w); }
            const ahead next = { distance ? (const char *) a[0] + distance : nullptr, M * step<T, T>::n * int64_t(sizeof(T)) };
            dots<M, 1>(k, int(std::min<int64_t>(M, end - i)), a, &x, y + i, 0, next);
        }
    };
    if (nb_w > k_short) {
        with(std::integral_constant<int, 8>(), 0);
    } else if constexpr (std::is_same_v<T, float>) {
        with(std::integral_constant<int, 1>(), 0);
    } else {
        with(std::integral_constant<int, 4>(), 4 * nb_w + k_ahead);
    }
}

// Columns begin to end - 1 of w's matrix {k, m} with n rows x, into y {m, n}. Strides in bytes.
template <typename T>
void multiply(int64_t k, int64_t begin, int64_t end, const char * w, size_t nb_w, int64_t n, const char * x, size_t nb_x, float * y, size_t nb_y) {
    const auto column = [&](int64_t i) { return (const T *) (w + i * nb_w); };
    if (n == 1) {
        return multiply_one<T>(k, begin, end, w, nb_w, (const T *) x, y);
    }
    // The first rows that meet four columns would wait for them: short ones are fetched while all rows meet those before.
    const int64_t pieces = (n + k_beside - 1) / k_beside, share = 4 * nb_w / pieces;
    const bool    fetches = nb_w <= k_short && nb_w == k * sizeof(T);
    for (int64_t i = begin; i < end; i += 4) {
        const T * a[4];
        for (int c = 0; c < 4; ++c) { a[c] = column(std::min(i + c, end - 1)); }
        ahead next = { fetches && i + 4 < end ? (const char *) column(i + 4) : nullptr, (4 * step<T, T>::n * int64_t(sizeof(T)) + pieces - 1) / pieces };
        in_pieces(int(n), k_beside, [&](int first, int last) {
            const T * b[k_beside];
            for (int r = first; r < last; ++r) { b[r - first] = (const T *) (x + r * nb_x); }
            dots(k, int(std::min<int64_t>(4, end - i)), a, last - first, b, (float *) ((char *) y + first * nb_y) + i, int64_t(nb_y / sizeof(float)), next);
            next.from = next.from ? next.from + share : nullptr;
        });
    }
}

// Rows as the weights are stored, one behind the other, and the count of jobs that are taken.
template <typename T> void prepare(const ggml_compute_params * params, const ggml_tensor * dst) {
    const ggml_tensor * w = dst->src[0], * x = dst->src[1];
    if (x->type != w->type) {
        const ggml_from_float_t from_float = ggml_get_type_traits_cpu(w->type)->from_float;
        const int64_t k = w->ne[0], n = x->ne[1], pieces = (k + k_convert - 1) / k_convert;
        for (int64_t i = params->ith; i < pieces * ggml_nrows(x); i += params->nth) {
            const int64_t row = i / pieces, at = i % pieces * k_convert, i1 = row % n, i2 = row / n % x->ne[2], i3 = row / n / x->ne[2];
            from_float((const float *) ((const char *) x->data + i1 * x->nb[1] + i2 * x->nb[2] + i3 * x->nb[3]) + at,
                (T *) params->wdata + row * k + at, std::min(k_convert, k - at));
        }
    }
    if (params->ith == 0) {
        ggml_threadpool_chunk_set(params->threadpool, 0);
    }
}

template <typename T> void mul_mat(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * w = dst->src[0], * x = dst->src[1];
    const int64_t k = w->ne[0], m = w->ne[1], n = x->ne[1], n_matrices = x->ne[2] * x->ne[3];
    const bool    converts = x->type != w->type;
    const size_t  nb_row   = converts ? k * sizeof(T) : x->nb[1];
    if (!params->prepared) {
        prepare<T>(params, dst);
        ggml_barrier(params->threadpool);
    }

    const int64_t chunks = (n + k_chunk - 1) / k_chunk;
    int64_t columns = 64;
    while (columns > 8 && (m + columns - 1) / columns * chunks * n_matrices < 4 * params->nth) { columns /= 2; }
    const int64_t blocks = (m + columns - 1) / columns;

    for (int64_t job; (job = ggml_threadpool_chunk_add(params->threadpool, 1)) < blocks * chunks * n_matrices;) {
        const int64_t block = job % blocks, chunk = job / blocks % chunks, matrix = job / blocks / chunks;
        const int64_t i2 = matrix % x->ne[2], i3 = matrix / x->ne[2], first = chunk * k_chunk;
        const char * from = converts ? (const char *) params->wdata + matrix * n * nb_row : (const char *) x->data + i2 * x->nb[2] + i3 * x->nb[3];
        multiply<T>(k, block * columns, std::min(m, (block + 1) * columns),
            (const char *) w->data + i2 / (x->ne[2] / w->ne[2]) * w->nb[2] + i3 / (x->ne[3] / w->ne[3]) * w->nb[3], w->nb[1],
            std::min(k_chunk, n - first), from + first * nb_row, nb_row,
            (float *) ((char *) dst->data + first * dst->nb[1] + i2 * dst->nb[2] + i3 * dst->nb[3]), dst->nb[1]);
    }
}

// Calls f with a null pointer to the type of the weights. False: a product that is not ours.
template <typename F> bool with_weights(const ggml_compute_params * params, const ggml_tensor * dst, const F & f) {
    const ggml_tensor * w = dst->src[0], * x = dst->src[1];
    if (params->use_ref || (x->type != GGML_TYPE_F32 && x->type != w->type) ||
            w->nb[0] != ggml_type_size(w->type) || x->nb[0] != ggml_type_size(x->type) || dst->nb[0] != sizeof(float)) {
        return false;
    }
    switch (w->type) {
        case GGML_TYPE_F32:  f((float *) nullptr);       return true;
#if defined(GGML_CPU_LANES_F16)
        case GGML_TYPE_F16:  f((ggml_fp16_t *) nullptr); return true;
#endif
#if defined(GGML_CPU_LANES_BF16)
        case GGML_TYPE_BF16: f((ggml_bf16_t *) nullptr); return true;
#endif
        default:             return false;
    }
}

} // namespace

bool ggml_cpu_dense_mul_mat(const ggml_compute_params * params, ggml_tensor * dst) {
    return with_weights(params, dst, [&](auto * type) { mul_mat<std::remove_pointer_t<decltype(type)>>(params, dst); });
}

bool ggml_cpu_dense_prepare(const ggml_compute_params * params, const ggml_tensor * op) {
    constexpr int64_t k_most = 16 * 1024; // values that one thread converts while others would come together
    // Weights in a buffer of another kind (AMX) are computed there, and no work space was planned for here.
    const auto is_ours = [](const ggml_tensor * w) { return !w->buffer || ggml_backend_buffer_is_host(w->buffer); };
    return op->op == GGML_OP_MUL_MAT && is_ours(op->src[0]) && ggml_nelements(op->src[1]) <= k_most &&
        with_weights(params, op, [&](auto * type) { prepare<std::remove_pointer_t<decltype(type)>>(params, op); });
}

#else

bool ggml_cpu_dense_mul_mat(const ggml_compute_params *, ggml_tensor *) {
    return false;
}

bool ggml_cpu_dense_prepare(const ggml_compute_params *, const ggml_tensor *) {
    return false;
}

#endif // GGML_CPU_LANES
