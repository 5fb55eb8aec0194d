// The gated delta net of one layer over a block, and the way back to what was accepted: by snapshots,
// as the base does it, and by trace. Same inputs, same device, in turns.
//
// Prints one line a device:
//   {"device": ..., "kind": "cpu" or "gpu",
//    "snapshots_us": ..., "snapshots_written": ..., "snapshots_kept": ..., the same of "trace_"}
// where written are the bytes of state that one verify of a block writes, and kept are those that live between passes.

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

// Qwen3.5-4B
constexpr int64_t S = 128, H_K = 16, H_V = 32, CHANNELS = 2 * H_K * S + H_V * S, WINDOW = 3;
constexpr int64_t BLOCK = 16, N_TRACE = BLOCK - 1, D = S * S * H_V;

struct layer {
    ggml_context_ptr         ctx;
    ggml_backend_buffer_ptr  buffer;
    ggml_cgraph *            graph = nullptr;
    std::vector<ggml_tensor *> inputs;
    size_t                   kept = 0; // bytes that live between passes
    ggml_tensor *            index = nullptr; // what was accepted: row of a snapshot, or tokens and half

    ggml_tensor * input(int64_t a, int64_t b = 1, int64_t c = 1) {
        inputs.push_back(ggml_new_tensor_3d(ctx.get(), GGML_TYPE_F32, a, b, c));
        return inputs.back();
    }
    ggml_tensor * cell(int64_t a, int64_t b = 1) {
        ggml_tensor * out = input(a, b);
        kept += ggml_nbytes(out);
        return out;
    }
};

struct qkv { ggml_tensor * q, * k, * v, * g, * beta; };

qkv split(layer & l, ggml_tensor * mixed) {
    ggml_context * ctx = l.ctx.get();
    const size_t f = sizeof(float);
    const auto heads = [&](int64_t h, int64_t offset) {
        return ggml_view_4d(ctx, mixed, S, h, BLOCK, 1, S * f, CHANNELS * f, CHANNELS * BLOCK * f, offset * f);
    };
    // As llm_build_qwen35 has it: an L2 norm by other names, and the gates of two products.
    const auto norm = [&](ggml_tensor * t) { return ggml_scale(ctx, ggml_rms_norm(ctx, t, 1e-6f / S), 1.0f / std::sqrt(float(S))); };
    const qkv x = { norm(heads(H_K, 0)), norm(heads(H_K, H_K * S)), heads(H_V, 2 * H_K * S),
        ggml_mul(ctx, ggml_softplus(ctx, ggml_add(ctx, l.input(H_V, BLOCK), l.input(H_V))), l.input(H_V)),
        ggml_sigmoid(ctx, l.input(H_V, BLOCK)) };
    return { x.q, x.k, x.v, ggml_reshape_4d(ctx, x.g, 1, H_V, BLOCK, 1), ggml_reshape_4d(ctx, x.beta, 1, H_V, BLOCK, 1) };
}

ggml_tensor * convolve(layer & l, ggml_tensor * conv_input) {
    ggml_tensor * kernel = l.input(WINDOW + 1, CHANNELS);
    return ggml_silu(l.ctx.get(), ggml_ssm_conv(l.ctx.get(), conv_input, kernel));
}

// What llm_build_delta_net_base does with n_rs_seq > 0 on the base.
void build_snapshots(layer & l) {
    ggml_context * ctx = l.ctx.get();
    const int64_t K = BLOCK;
    const size_t  f = sizeof(float), conv_row = WINDOW * CHANNELS * f;
    l.index = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 1);

    ggml_tensor * conv_all  = l.cell(WINDOW * CHANNELS, K);
    ggml_tensor * state_all = l.cell(D, K);

    ggml_tensor * window = ggml_reshape_3d(ctx, ggml_get_rows(ctx, conv_all, l.index), WINDOW, CHANNELS, 1);
    ggml_tensor * conv_input = ggml_concat(ctx, window, ggml_transpose(ctx, l.input(CHANNELS, BLOCK)), 0);
    for (int64_t t = 1; t <= K; ++t) {
        ggml_tensor * src = ggml_view_3d(ctx, conv_input, WINDOW, CHANNELS, 1, conv_input->nb[1], conv_input->nb[2], (BLOCK - K + t) * f);
        ggml_tensor * dst = ggml_view_2d(ctx, conv_all, WINDOW * CHANNELS, 1, conv_row, (K - t) * conv_row);
        ggml_build_forward_expand(l.graph, ggml_cpy(ctx, src, dst));
    }
    ggml_tensor * state = ggml_reshape_4d(ctx, ggml_get_rows(ctx, state_all, l.index), S, S, H_V, 1);
    const qkv x = split(l, convolve(l, conv_input));
    ggml_tensor * out = ggml_gated_delta_net(ctx, x.q, x.k, x.v, x.g, x.beta, state, K);
    ggml_tensor * src = ggml_view_3d(ctx, out, D, 1, K, D * f, D * f, S * H_V * BLOCK * f);
    ggml_build_forward_expand(l.graph, ggml_cpy(ctx, src, ggml_view_3d(ctx, state_all, D, 1, K, D * f, D * f, 0)));
}

void build_trace(layer & l) {
    ggml_context * ctx = l.ctx.get();
    const size_t  f = sizeof(float);
    const int64_t rows = WINDOW + N_TRACE;
    l.index = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 2, 1);
    ggml_tensor * conv_rows = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, WINDOW);
    ggml_set_name(conv_rows, "conv_rows");

    ggml_tensor * conv_all = l.cell(CHANNELS, rows);
    ggml_tensor * state    = ggml_reshape_4d(ctx, l.cell(D), S, S, H_V, 1);
    ggml_tensor * trace    = l.cell(ggml_gated_delta_net_trace_size(S, H_K, H_V, 1, N_TRACE));

    ggml_tensor * window = ggml_get_rows(ctx, conv_all, conv_rows);
    ggml_tensor * inputs = ggml_concat(ctx, window, l.input(CHANNELS, BLOCK), 1);
    ggml_tensor * src = ggml_view_2d(ctx, inputs, CHANNELS * rows, 1, inputs->nb[2], (BLOCK - N_TRACE) * CHANNELS * f);
    ggml_build_forward_expand(l.graph, ggml_cpy(ctx, src, ggml_view_2d(ctx, conv_all, CHANNELS * rows, 1, CHANNELS * rows * f, 0)));
    const qkv x = split(l, convolve(l, ggml_cont(ctx, ggml_transpose(ctx, inputs))));
    ggml_build_forward_expand(l.graph,
        ggml_gated_delta_net_trace(ctx, state, trace, l.index, x.q, x.k, x.v, x.g, x.beta, N_TRACE));
}

layer make(ggml_backend_t backend, void (*build)(layer &)) {
    layer l;
    l.ctx.reset(ggml_init({ 1 << 20, nullptr, /*no_alloc*/ true }));
    l.graph = ggml_new_graph(l.ctx.get());
    build(l);
    l.buffer.reset(ggml_backend_alloc_ctx_tensors(l.ctx.get(), backend));

    std::mt19937 rng(1);
    std::uniform_real_distribution<float> values(-0.5f, 0.0f); // also valid gates
    for (ggml_tensor * t : l.inputs) {
        std::vector<float> data(ggml_nelements(t));
        std::generate(data.begin(), data.end(), [&] { return values(rng); });
        ggml_backend_tensor_set(t, data.data(), 0, ggml_nbytes(t));
    }
    return l;
}

// Microseconds of one pass that goes on from `accepted` tokens of the pass before.
double pass(ggml_backend_t backend, layer & l, int32_t accepted) {
    if (ggml_tensor * conv_rows = ggml_get_tensor(l.ctx.get(), "conv_rows")) {
        const int32_t first = accepted - 1;
        const int32_t rows[WINDOW] = { first, first + 1, first + 2 };
        ggml_backend_tensor_set(conv_rows, rows, 0, sizeof(rows));
        const int32_t replay[2] = { accepted - 1, accepted % 2 };
        ggml_backend_tensor_set(l.index, replay, 0, sizeof(replay));
    } else {
        const int32_t slot = static_cast<int32_t>(BLOCK) - accepted;
        ggml_backend_tensor_set(l.index, &slot, 0, sizeof(slot));
    }
    ggml_backend_synchronize(backend);
    const auto start = std::chrono::steady_clock::now();
    ggml_backend_graph_compute(backend, l.graph);
    ggml_backend_synchronize(backend);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

} // namespace

int main(int argc, char ** argv) {
    const int n_threads = argc > 1 ? std::atoi(argv[1]) : 2;
    const int n_passes  = argc > 2 ? std::atoi(argv[2]) : 100;
    ggml_backend_load_all();
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        ggml_backend_ptr backend(ggml_backend_dev_init(dev, nullptr));
        if (!backend || ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_ACCEL) {
            continue;
        }
        if (auto set = (void (*)(ggml_backend_t, int)) ggml_backend_reg_get_proc_address(
                ggml_backend_dev_backend_reg(dev), "ggml_backend_set_n_threads")) {
            set(backend.get(), n_threads);
        }
        layer snapshots = make(backend.get(), build_snapshots), trace = make(backend.get(), build_trace);
        std::vector<double> a, b;
        for (int n = 0; n < n_passes + 10; ++n) {
            const int32_t accepted = 1 + (n * 7) % BLOCK;
            const double ta = pass(backend.get(), snapshots, accepted), tb = pass(backend.get(), trace, accepted);
            if (n >= 10) { // warm
                a.push_back(ta);
                b.push_back(tb);
            }
        }
        const size_t f = sizeof(float);
        const bool   is_cpu = ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU;
        std::printf("{\"device\": \"%s\", \"kind\": \"%s\"", ggml_backend_dev_description(dev), is_cpu ? "cpu" : "gpu");
        const auto side = [&](const char * name, double us, size_t written, size_t kept) {
            std::printf(", \"%s_us\": %.1f, \"%s_written\": %zu, \"%s_kept\": %zu", name, us, name, written, name, kept);
        };
        side("snapshots", median(a), BLOCK * D * f, snapshots.kept);
        side("trace",     median(b), (D + N_TRACE * (H_K * S + H_V * S + H_V)) * f, trace.kept);
        std::printf("}\n");
        std::fflush(stdout);
    }
    return 0;
}
