// Products with Q4_K, Q5_K, Q6_K and Q8_0 weights on the CPU, in each buffer type that repacks them, for numbers of rows
// around every border: against the same product with weights in a plain buffer, where each column is computed by
// itself; for Q8_0, whose activations get factors of 16 bits there and of 32 in ours, against sums in double
// precision. In CPU_KQUANTS a row must further have the same bits whatever stands beside it, and whether its weights
// came in as a whole or by tiles, packed by several threads or where none can be had.
//
//   test-kquants     a line a case; the last says how many buffer types were tested; exit code 1 if a case fails

#include "errors-only.h"

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#if defined(__linux__)
#include <cerrno>
#include <dlfcn.h>
#include <pthread.h>

// Threads that can still be had, in all libraries; below 0: as many as are wanted.
static int g_threads_left = -1;

extern "C" int pthread_create(pthread_t * thread, const pthread_attr_t * attr, void * (*start)(void *), void * arg) {
    static auto * const create = (decltype(&pthread_create)) dlsym(RTLD_NEXT, "pthread_create");
    return g_threads_left == 0 ? EAGAIN : (g_threads_left -= g_threads_left > 0, create(thread, attr, start, arg));
}
#endif

namespace {

constexpr double k_limit = 2e-6; // of the largest result: two float sums of 3,072 terms in blocks of 256

struct product {
    ggml_context_ptr        context;
    ggml_backend_buffer_ptr weights, rest;
    ggml_tensor *           w = nullptr, * x = nullptr, * y = nullptr;
    ggml_cgraph *           graph = nullptr;
};

// y = w x with w [k, n] in a buffer of `buft` and x [k, rows]. False: this buffer type does not take w.
bool make(product & p, ggml_backend_t cpu, ggml_backend_buffer_type_t buft, ggml_type type, int64_t k, int64_t n, int64_t rows) {
    p.context.reset(ggml_init({ ggml_tensor_overhead() * 8 + ggml_graph_overhead(), nullptr, /*no_alloc*/ true }));
    ggml_context * ctx = p.context.get();
    p.w = ggml_new_tensor_2d(ctx, type, k, n);
    p.x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, k, rows);
    p.y = ggml_mul_mat(ctx, p.w, p.x);
    p.weights.reset(ggml_backend_buft_alloc_buffer(buft, ggml_backend_buft_get_alloc_size(buft, p.w)));
    p.w->buffer = p.weights.get();
    const bool taken = ggml_backend_supports_op(cpu, p.y);
    p.w->buffer = nullptr;
    if (!taken) {
        return false;
    }
    ggml_backend_tensor_alloc(p.weights.get(), p.w, ggml_backend_buffer_get_base(p.weights.get()));
    p.rest.reset(ggml_backend_alloc_ctx_tensors(ctx, cpu));
    p.graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(p.graph, p.y);
    return true;
}

std::vector<float> run(product & p, ggml_backend_t cpu, const float * x) {
    ggml_backend_tensor_set(p.x, x, 0, ggml_nbytes(p.x));
    ggml_backend_graph_compute(cpu, p.graph);
    std::vector<float> y(ggml_nelements(p.y));
    ggml_backend_tensor_get(p.y, y.data(), 0, ggml_nbytes(p.y));
    return y;
}

// Activations in 8 bits, 32 with one factor, as CPU_KQUANTS takes them for Q8_0.
std::vector<float> reference(const std::vector<uint8_t> & w, int64_t k, int64_t n, const float * x, int64_t rows) {
    std::vector<float> weights(k * n), y(n * rows);
    ggml_get_type_traits(GGML_TYPE_Q8_0)->to_float(w.data(), weights.data(), k * n);
    for (int64_t row = 0; row < rows; ++row, x += k) {
        std::vector<double> rounded(k);
        for (int64_t block = 0; block < k; block += 32) {
            float largest = 0;
            for (int i = 0; i < 32; ++i) { largest = std::max(largest, std::fabs(x[block + i])); }
            for (int i = 0; i < 32 && largest > 0; ++i) {
                rounded[block + i] = std::nearbyint(x[block + i] * (127.0f / largest)) * double(largest / 127.0f);
            }
        }
        for (int64_t column = 0; column < n; ++column) {
            double sum = 0;
            for (int64_t i = 0; i < k; ++i) { sum += rounded[i] * weights[column * k + i]; }
            y[row * n + column] = float(sum);
        }
    }
    return y;
}

std::vector<ggml_backend_buffer_type_t> repacking(ggml_backend_dev_t device) {
    std::vector<ggml_backend_buffer_type_t> out;
    const auto get = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
    for (ggml_backend_buffer_type_t * buft = get ? get(device) : nullptr; buft && *buft; ++buft) {
        out.push_back(*buft);
    }
    return out;
}

#if defined(__linux__)
// A matrix that several threads pack has the same bytes where none or one of them can be had.
bool packs_alone(ggml_backend_t cpu, ggml_backend_buffer_type_t buft) {
    constexpr int64_t k = 256, n = 16384;
    std::vector<uint8_t> packed(ggml_row_size(GGML_TYPE_Q8_0, k) * n);
    for (size_t i = 0; i < packed.size(); ++i) {
        packed[i] = uint8_t(i * 7 % 251);
    }
    std::vector<std::vector<uint8_t>> found;
    for (const int left : { -1, 0, 1 }) {
        product p;
        if (!make(p, cpu, buft, GGML_TYPE_Q8_0, k, n, 1)) {
            return true;
        }
        g_threads_left = left;
        ggml_backend_tensor_set(p.w, packed.data(), 0, packed.size());
        g_threads_left = -1;
        const auto * data = (const uint8_t *) p.w->data;
        found.emplace_back(data, data + ggml_backend_buft_get_alloc_size(buft, p.w));
    }
    return found[1] == found[0] && found[2] == found[0];
}
#endif

} // namespace

int main() {
    log_errors_only(); // and not a line for each tensor that is repacked
    ggml_backend_ptr cpu(ggml_backend_cpu_init());
    ggml_backend_cpu_set_n_threads(cpu.get(), 2);
    const auto bufts = repacking(ggml_backend_get_device(cpu.get()));
    int failed = 0;
    std::vector<std::string> tested;

    for (const ggml_type type : { GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_Q8_0 }) {
        for (const auto [k, n] : { std::pair<int64_t, int64_t> { 256, 32 }, { 256, 13 }, { 1024, 165 }, { 3072, 1056 } }) {
            std::mt19937 random(static_cast<unsigned>(k + n + type));
            std::normal_distribution<float> normal;
            std::vector<float> w(k * n), x(k * 131);
            for (float & v : w) { v = normal(random); }
            for (float & v : x) { v = normal(random); }
            // Blocks that quantize at the edges: all zero, one sign only (a minimum of zero), one value far out.
            std::fill(w.begin(), w.begin() + 256, 0.0f);
            std::fill(x.begin(), x.begin() + 256, 0.0f);
            for (int i = 0; i < 256; ++i) { w[k + i] = std::fabs(w[k + i]); w[2 * k + i] = -std::fabs(w[2 * k + i]); }
            x[k + 7] = 1000.0f;
            // The largest sums of products that there are: all of a block at one end.
            std::fill_n(w.begin() + 3 * k, 256, -1.0f);
            std::fill_n(w.begin() + 4 * k, 256, 1.0f);
            std::fill_n(x.begin() + 2 * k, 256, 1.0f);
            std::vector<uint8_t> packed(ggml_row_size(type, k) * n);
            ggml_quantize_chunk(type, w.data(), packed.data(), 0, n, k, nullptr);

            for (const auto buft : bufts) {
                const std::string name = ggml_backend_buft_name(buft);
                const bool same_bits = name == "CPU_KQUANTS";
                std::vector<float> alone; // each row by itself
                double worst = 0;
                bool   taken = false, differs = false;
                for (const int rows : { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 20, 21, 32, 33, 63, 64, 65, 131 }) {
                    product plain, ours;
                    if (!make(ours, cpu.get(), buft, type, k, n, rows)) {
                        break;
                    }
                    taken = true;
                    make(plain, cpu.get(), ggml_backend_cpu_buffer_type(), type, k, n, rows);
                    if (same_bits && rows % 2 == 0) { // by 16 columns, the last ones first
                        const size_t column = ours.w->nb[1];
                        for (int64_t first = (n - 1) / 16 * 16; first >= 0; first -= 16) {
                            ggml_backend_tensor_set(ours.w, packed.data() + first * column, first * column, std::min<int64_t>(16, n - first) * column);
                        }
                    } else {
                        ggml_backend_tensor_set(ours.w, packed.data(), 0, packed.size());
                    }
                    ggml_backend_tensor_set(plain.w, packed.data(), 0, packed.size());
                    const auto got    = run(ours, cpu.get(), x.data());
                    const auto wanted = type == GGML_TYPE_Q8_0 && same_bits ? reference(packed, k, n, x.data(), rows) : run(plain, cpu.get(), x.data());
                    for (int row = 0; row < rows; ++row) {
                        double largest = 0, error = 0;
                        for (int64_t i = row * n; i < (row + 1) * n; ++i) {
                            largest = std::max(largest, double(std::fabs(wanted[i])));
                            error   = std::max(error, std::fabs(double(got[i]) - wanted[i]));
                        }
                        worst = std::max(worst, error / std::max(largest, 1e-3));
                        if (!std::isfinite(error)) {
                            worst = INFINITY;
                        }
                    }
                    if (rows == 1) {
                        for (int row = 0; row < 131; ++row) {
                            const auto y = run(ours, cpu.get(), x.data() + row * k);
                            alone.insert(alone.end(), y.begin(), y.end());
                        }
                    }
                    differs |= std::memcmp(got.data(), alone.data(), got.size() * sizeof(float)) != 0;
                }
                if (!taken) {
                    continue;
                }
                const bool ok = worst <= k_limit && !(same_bits && differs);
                failed += !ok;
                std::printf("%-6s %-12s %s %lld x %lld: error %.1e%s\n", ok ? "ok" : "FAILED", name.c_str(), ggml_type_name(type),
                    (long long) k, (long long) n, worst, same_bits ? (differs ? ", rows depend on each other" : ", same bits for any number of rows") : "");
                if (std::find(tested.begin(), tested.end(), name) == tested.end()) {
                    tested.push_back(name);
                }
            }
        }
    }
#if defined(__linux__)
    for (const auto buft : bufts) {
        if (std::strcmp(ggml_backend_buft_name(buft), "CPU_KQUANTS") == 0 && !packs_alone(cpu.get(), buft)) {
            std::printf("FAILED: packed by fewer threads\n");
            ++failed;
        }
    }
#endif
    std::printf("%zu buffer types tested, %s\n", tested.size(), failed ? "FAILED" : "all passed");
    return failed ? 1 : 0;
}
