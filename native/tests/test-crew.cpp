// Graphs computed by crews that others keep from the cores: test-crew [TIMES]. Exit status 1 if a value is wrong.
//
// Three callers compute at once, with one to five threads each, more than most machines have cores: so helpers come late,
// stay away or come to a graph that is over already. What belongs to a graph is gone and overwritten when the next begins.

#include "ggml-cpu.h"
#include "ggml.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int k_width = 128, k_rows = 80, k_layers = 12, k_callers = 3, k_most_threads = 5;

// Products large enough to be shared, with what one thread does between them.
struct graph {
    ggml_context * ctx;
    ggml_cgraph *  nodes;
    ggml_tensor *  out;

    graph() {
        ctx = ggml_init({ size_t(32) << 20, nullptr, false });
        ggml_tensor * x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, k_width, k_rows);
        fill(x, 1);
        for (int i = 0; i < k_layers; ++i) {
            ggml_tensor * w = ggml_new_tensor_2d(ctx, i % 2 ? GGML_TYPE_F32 : GGML_TYPE_F16, k_width, k_width);
            fill(w, 2 + i);
            x = ggml_rms_norm(ctx, ggml_add(ctx, x, ggml_silu(ctx, ggml_mul_mat(ctx, w, x))), 1e-6f);
        }
        out   = ggml_scale(ctx, ggml_view_2d(ctx, x, k_width, 4, x->nb[1], 0), 2.0f); // too small to be shared
        nodes = ggml_new_graph(ctx);
        ggml_build_forward_expand(nodes, out);
    }
    ~graph() { ggml_free(ctx); }

    static void fill(ggml_tensor * t, int seed) {
        for (int64_t i = 0; i < ggml_nelements(t); ++i) {
            ggml_set_f32_1d(t, int(i), std::sin(float(i * 7 + seed)) / 8);
        }
    }

    // What the last node has then. Nothing where the graph was aborted.
    std::vector<float> compute(int n_threads, ggml_abort_callback abort = nullptr, void * data = nullptr) {
        ggml_cplan plan = ggml_graph_plan(nodes, n_threads, nullptr);
        std::vector<uint8_t> work(plan.work_size);
        plan.work_data           = work.data();
        plan.abort_callback      = abort;
        plan.abort_callback_data = data;
        std::memset(out->data, 0xFF, ggml_nbytes(out));
        if (ggml_graph_compute(nodes, &plan) != GGML_STATUS_SUCCESS) {
            return {};
        }
        const float * values = (const float *) out->data;
        return { values, values + ggml_nelements(out) };
    }
};

bool same(const std::vector<float> & a, const std::vector<float> & b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace

int main(int argc, char ** argv) {
    const int times = argc > 1 ? std::atoi(argv[1]) : 400;
    const std::vector<float> wanted = graph().compute(1);
    std::atomic<int> wrong { 0 };
    std::vector<std::thread> callers;
    for (int c = 0; c < k_callers; ++c) {
        callers.emplace_back([&, c] {
            for (int i = 0; i < times; ++i) {
                graph g;
                wrong += !same(g.compute(1 + (i + c) % k_most_threads), wanted);
                int left = i % (2 * k_layers); // nodes after which it is aborted
                const auto abort = [](void * data) { return --*(int *) data < 0; };
                const auto found = g.compute(2 + c, abort, &left);
                wrong += !found.empty() && !same(found, wanted);
            }
        });
    }
    for (std::thread & caller : callers) {
        caller.join();
    }
    if (wrong > 0) {
        std::printf("%d of %d graphs have wrong values\n", wrong.load(), 2 * k_callers * times);
        return 1;
    }
    std::printf("all passed\n");
    return 0;
}
