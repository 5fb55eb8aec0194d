// The gated delta net that can be rewound, on every device present: the plain operations of llm_delta_net_trace
// ("portable") and the fused op ggml_gated_delta_net_trace ("fused") against a reference in double precision.
// Compared are the outputs, the committed state, and both again after every rollback.
//
//   test-gdn-chunked [DEVICE...]           the test on these devices or on all; exit code 1 if a comparison fails
//   test-gdn-chunked --quick [DEVICE...]   fewer lengths, rollbacks and sizes, for software renderers
//   test-gdn-chunked --bench [DEVICE...]   time per pass instead
//
// An error is the largest difference within a head over the largest value of that head in the reference (values and
// states are of order one; below 0.01 the difference counts as it is). Limit: 1e-5, some hundred roundings. Where a
// device multiplies matrices in fewer digits (TF32, half precision), the portable path, a chain of products, cannot do
// better: it gets 32 times the error that the same measure finds for one product there. The fused op gets no discount.
// On the CPU the state that the fused op replays must have the bits of a run over the accepted tokens.

#include "models/models.h"

#include "ggml-backend.h"
#include "ggml-cpp.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr double LIMIT = 1e-5;

struct dims {
    int64_t S, H_k, H_v;
    bool    kda;
    int64_t n_seqs, n_trace;

    int64_t gate() const { return kda ? S : 1; }
    int64_t row_in() const { return (2 * H_k + H_v) * S; } // q, k, v of a token lie side by side as in the model
    int64_t row_out() const { return H_v * S; }
    int64_t n_state() const { return H_v * S * S; } // of a sequence
    int64_t n_row() const { return ggml_gated_delta_net_trace_size(S, H_k, H_v, gate(), n_trace); }
};

enum class kind { random, gates_zero, gates_low, gates_mixed, keys_zero, keys_same, beta_edge };
constexpr kind KINDS[] = {
    kind::random, kind::gates_zero, kind::gates_low, kind::gates_mixed, kind::keys_zero, kind::keys_same, kind::beta_edge };
constexpr const char * KIND_NAMES[] = {
    "random", "gates near 0", "gates -80", "gates mixed", "zero keys", "equal keys", "beta 0 or 1" };

// Tokens of all sequences: [n_seqs][n_tokens][row]
struct tokens {
    std::vector<float> qkv, gate, beta;
};

tokens make_tokens(const dims & d, kind what, int64_t n, std::mt19937 & rng) {
    std::normal_distribution<float>       normal;
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);

    tokens out;
    std::vector<float> same(d.S);
    for (float & x : same) { x = normal(rng); }

    for (int64_t i = 0; i < d.n_seqs * n; ++i) {
        for (int64_t head = 0; head < 2 * d.H_k; ++head) {
            std::vector<float> x(d.S);
            for (float & e : x) { e = normal(rng); }
            if (head >= d.H_k && what == kind::keys_same) {
                x = same;
            }
            float norm = 0.0f;
            for (float e : x) { norm += e * e; }
            norm = 1.0f / std::sqrt(norm);
            if (head >= d.H_k && what == kind::keys_zero && i % 3 != 0) {
                norm = 0.0f;
            }
            for (float e : x) { out.qkv.push_back(e * norm); }
        }
        for (int64_t e = 0; e < d.H_v * d.S; ++e) { out.qkv.push_back(normal(rng)); }
        for (int64_t e = 0; e < d.H_v * d.gate(); ++e) {
            const float x = uniform(rng);
            switch (what) {
                case kind::gates_zero:  out.gate.push_back(-1e-6f * x); break;
                case kind::gates_low:   out.gate.push_back(-80.0f - x); break;
                case kind::gates_mixed: out.gate.push_back(uniform(rng) < 0.2f ? -80.0f * x : -0.02f * x); break;
                case kind::keys_same:   out.gate.push_back(0.0f); break;
                default:                out.gate.push_back(-1.5f * x * x); break;
            }
        }
        for (int64_t e = 0; e < d.H_v; ++e) {
            const float x = uniform(rng);
            out.beta.push_back(what == kind::beta_edge ? std::round(x) : what == kind::keys_same ? 1.0f : x);
        }
    }
    return out;
}

// `n` tokens of each sequence, from first[s] on, out of `n_all`
tokens take(const dims & d, const tokens & all, int64_t n_all, const std::vector<int64_t> & first, int64_t n) {
    tokens out;
    const auto copy = [&](const std::vector<float> & from, std::vector<float> & to, int64_t row) {
        for (int64_t s = 0; s < d.n_seqs; ++s) {
            const auto at = from.begin() + (s * n_all + first[s]) * row;
            to.insert(to.end(), at, at + n * row);
        }
    };
    copy(all.qkv,  out.qkv,  d.row_in());
    copy(all.gate, out.gate, d.H_v * d.gate());
    copy(all.beta, out.beta, d.H_v);
    return out;
}

// Sequential, in double precision: outputs of all tokens and the state after n_from of them and more. The state is
// stored as the ops do: [j][i], i the index of the key.
struct reference {
    std::vector<double>                    out;    // [n_seqs][n][H_v][S]
    std::map<int64_t, std::vector<double>> states; // after so many tokens: [n_seqs][H_v][S][S]

    reference(const dims & d, const tokens & t, int64_t n, const std::vector<float> & state, int64_t n_from) {
        std::vector<double> s(state.begin(), state.end());
        out.resize(d.n_seqs * n * d.row_out());
        const double scale = 1.0 / std::sqrt((double) d.S);
        for (int64_t i = 0; i < n; ++i) {
            if (i >= n_from) {
                states[i] = s;
            }
            for (int64_t sh = 0; sh < d.n_seqs * d.H_v; ++sh) {
                const int64_t h = sh % d.H_v;
                const int64_t token = sh / d.H_v * n + i;
                const float * q = t.qkv.data() + token * d.row_in() + h % d.H_k * d.S;
                const float * k = q + d.H_k * d.S;
                const float * v = t.qkv.data() + token * d.row_in() + (2 * d.H_k + h) * d.S;
                const float * g = t.gate.data() + (token * d.H_v + h) * d.gate();
                const double  beta = t.beta[token * d.H_v + h];
                std::vector<double> alpha(d.S);
                for (int64_t e = 0; e < d.S; ++e) {
                    alpha[e] = std::exp((double) g[d.kda ? e : 0]);
                }
                for (int64_t j = 0; j < d.S; ++j) {
                    double * row = s.data() + (sh * d.S + j) * d.S;
                    double known = 0.0, result = 0.0;
                    for (int64_t e = 0; e < d.S; ++e) {
                        row[e] *= alpha[e];
                        known  += row[e] * k[e];
                    }
                    const double u = beta * (v[j] - known);
                    for (int64_t e = 0; e < d.S; ++e) {
                        row[e] += k[e] * u;
                        result += row[e] * q[e];
                    }
                    out[(token * d.H_v + h) * d.S + j] = result * scale;
                }
            }
        }
        states[n] = s;
    }
};

// Largest error over the blocks of `size` values that belong to one head; NaN counts as infinite.
double error_of(const float * x, const double * want, int64_t n, int64_t size) {
    double worst = 0.0;
    for (int64_t b = 0; b < n; b += size) {
        double diff = 0.0, largest = 0.0;
        for (int64_t i = b; i < b + size; ++i) {
            if (!std::isfinite(x[i])) {
                return INFINITY;
            }
            diff    = std::max(diff, std::fabs(x[i] - want[i]));
            largest = std::max(largest, std::fabs(want[i]));
        }
        worst = std::max(worst, largest < 0.01 ? diff : diff / largest);
    }
    return worst;
}

enum class path { portable, fused, sequential };
constexpr const char * PATH_NAMES[] = { "portable", "fused", "sequential" };

// A device with one set of cells and a graph for each number of tokens.
class machine {
public:
    machine(ggml_backend_dev_t dev, path how, const dims & d) : d(d), how(how), backend(ggml_backend_dev_init(dev, nullptr)) {
        std::vector<ggml_backend_t> all = { backend.get() };
        if (ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU) {
            const auto set_threads = (ggml_backend_set_n_threads_t) ggml_backend_reg_get_proc_address(
                ggml_backend_dev_backend_reg(dev), "ggml_backend_set_n_threads");
            set_threads(backend.get(), (int) std::max(1u, std::thread::hardware_concurrency()));
        } else {
            cpu.reset(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
            all.push_back(cpu.get());
        }
        sched.reset(ggml_backend_sched_new(all.data(), nullptr, (int) all.size(), 4096, false, false));

        cells_ctx.reset(ggml_init({ 4 * ggml_tensor_overhead(), nullptr, true }));
        state = ggml_new_tensor_4d(cells_ctx.get(), GGML_TYPE_F32, d.S, d.S, d.H_v, d.n_seqs);
        trace = ggml_new_tensor_2d(cells_ctx.get(), GGML_TYPE_F32, d.n_row(), d.n_seqs);
        buffer.reset(ggml_backend_alloc_ctx_tensors(cells_ctx.get(), backend.get()));
    }

    void set_cells(const std::vector<float> & new_state, const std::vector<float> & new_trace) {
        ggml_backend_tensor_set(state, new_state.data(), 0, ggml_nbytes(state));
        ggml_backend_tensor_set(trace, new_trace.data(), 0, ggml_nbytes(trace));
    }
    std::vector<float> get_state() const { return get(state); }
    std::vector<float> get_trace() const { return get(trace); }

    // false where the device lacks the op
    bool can(int64_t n) { build(n); return node_ok; }

    // a pass over n tokens of each sequence; replay: [n_seqs] of (tokens, half)
    std::vector<float> pass(const tokens & t, int64_t n, const std::vector<int32_t> & replay) {
        build(n);
        set(in_qkv, t.qkv);
        set(in_gate, t.gate);
        set(in_beta, t.beta);
        std::vector<float>   mask;
        std::vector<int64_t> rows;
        for (int64_t s = 0; s < d.n_seqs; ++s) {
            for (int64_t i = 0; i < d.n_trace; ++i) { mask.push_back(i < replay[2 * s] ? 1.0f : 0.0f); }
            for (int64_t i = 0; i < std::min(n, d.n_trace); ++i) { rows.push_back((1 - replay[2 * s + 1]) * d.n_trace + i); }
        }
        set(in_replay, replay);
        set(in_mask, mask);
        set(in_rows, rows);
        compute();
        return get(output);
    }

    void compute() { ggml_backend_sched_graph_compute(sched.get(), graph); }
    int n_nodes() const { return ggml_graph_n_nodes(graph); }

private:
    void build(int64_t n) {
        if (built == n) {
            return;
        }
        built = n;
        ggml_backend_sched_reset(sched.get());
        graph_ctx.reset(ggml_init({ 8192 * ggml_tensor_overhead() + ggml_graph_overhead_custom(4096, false), nullptr, true }));
        ggml_context * ctx = graph_ctx.get();
        graph = ggml_new_graph_custom(ctx, 4096, false);

        const auto input = [&](ggml_type type, int64_t a, int64_t b, int64_t c, int64_t e) {
            ggml_tensor * x = ggml_new_tensor_4d(ctx, type, a, b, c, e);
            ggml_set_input(x);
            ggml_set_output(x); // or its memory would be used again, and --bench runs a graph many times
            return x;
        };
        in_qkv    = input(GGML_TYPE_F32, d.row_in(), n, d.n_seqs, 1);
        in_gate   = input(GGML_TYPE_F32, d.gate(), d.H_v, n, d.n_seqs);
        in_beta   = input(GGML_TYPE_F32, 1, d.H_v, n, d.n_seqs);
        in_replay = input(GGML_TYPE_I32, 2, d.n_seqs, 1, 1);
        in_mask   = input(GGML_TYPE_F32, d.n_trace, d.n_seqs, 1, 1);
        in_rows   = input(GGML_TYPE_I64, std::min(n, d.n_trace), d.n_seqs, 1, 1);

        const auto part = [&](int64_t heads, int64_t offset) {
            return ggml_view_4d(ctx, in_qkv, d.S, heads, n, d.n_seqs, d.S * sizeof(float), in_qkv->nb[1], in_qkv->nb[2],
                offset * d.S * sizeof(float));
        };
        ggml_tensor * q = part(d.H_k, 0);
        ggml_tensor * k = part(d.H_k, d.H_k);
        ggml_tensor * v = part(d.H_v, 2 * d.H_k);

        switch (how) {
            case path::portable:
                output = llm_delta_net_trace(ctx, graph, [](ggml_tensor *, const char *, int) {},
                    { state, trace, in_replay, in_mask, in_rows }, q, k, v, in_gate, in_beta, 0);
                break;
            case path::fused:
                output = ggml_gated_delta_net_trace(ctx, state, trace, in_replay, q, k, v, in_gate, in_beta, d.n_trace);
                run_here(output);
                break;
            case path::sequential: {
                ggml_tensor * both = ggml_gated_delta_net(ctx, q, k, v, in_gate, in_beta, state, 1);
                run_here(both);
                const int64_t n_out = d.row_out() * n * d.n_seqs;
                ggml_build_forward_expand(graph, ggml_cpy(ctx, ggml_view_1d(ctx, both, ggml_nelements(state), n_out * sizeof(float)),
                    ggml_reshape_1d(ctx, state, ggml_nelements(state))));
                output = ggml_view_1d(ctx, both, n_out, 0);
            } break;
        }
        output = ggml_cont(ctx, output);
        ggml_set_output(output);
        ggml_build_forward_expand(graph, output);
        ggml_backend_sched_alloc_graph(sched.get(), graph);
    }

    // The scheduler would move an op next to its inputs, where it updates a copy of the cells.
    void run_here(ggml_tensor * node) {
        node_ok = ggml_backend_supports_op(backend.get(), node);
        if (node_ok) {
            ggml_backend_sched_set_tensor_backend(sched.get(), node, backend.get());
        }
    }

    static std::vector<float> get(const ggml_tensor * x) {
        std::vector<float> out(ggml_nelements(x));
        ggml_backend_tensor_get(x, out.data(), 0, ggml_nbytes(x));
        return out;
    }
    template <typename T> static void set(ggml_tensor * x, const std::vector<T> & data) {
        if (x->buffer) { // not part of every path
            ggml_backend_tensor_set(x, data.data(), 0, ggml_nbytes(x));
        }
    }

    dims d;
    path how;
    ggml_backend_ptr        backend, cpu;
    ggml_backend_sched_ptr  sched;
    ggml_context_ptr        cells_ctx, graph_ctx;
    ggml_backend_buffer_ptr buffer;
    ggml_tensor *           state = nullptr, * trace = nullptr, * output = nullptr;
    ggml_tensor *           in_qkv = nullptr, * in_gate = nullptr, * in_beta = nullptr;
    ggml_tensor *           in_replay = nullptr, * in_mask = nullptr, * in_rows = nullptr;
    ggml_cgraph *           graph = nullptr;
    int64_t                 built = -1;
    bool                    node_ok = true;
};

struct tally {
    double out = 0.0, state = 0.0, out_after = 0.0, state_after = 0.0;
    int    n = 0, n_bits_differ = 0;

    double worst() const { return std::max(std::max(out, state), std::max(out_after, state_after)); }
};

std::vector<float> random_floats(int64_t n, float scale, std::mt19937 & rng) {
    std::normal_distribution<float> normal;
    std::vector<float> out(n);
    for (float & x : out) { x = scale * normal(rng); }
    return out;
}

// A pass over `length` tokens, then every rollback (or every fifth): a few tokens after it, and once a pass that
// commits those.
void run_case(ggml_backend_dev_t dev, path how, const dims & d, kind what, int64_t length, int64_t step, tally & t) {
    constexpr int64_t N_AFTER = 3;
    const bool    bitwise  = how == path::fused && ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU;
    const int64_t n_traced = std::min(length, d.n_trace);
    const int64_t n_commit = length - n_traced;
    const int64_t n_all    = length + d.n_trace + 2 * N_AFTER;

    machine first(dev, how, d), after(dev, how, d), again(dev, how, d);
    std::mt19937 rng((uint32_t) (length * 31 + d.S * 7 + (int) what));
    const tokens all    = make_tokens(d, what, n_all, rng);
    const auto   state0 = random_floats(d.n_seqs * d.n_state(), 0.3f, rng);
    const auto   trace0 = random_floats(d.n_seqs * d.n_row(), 3.0f, rng); // whatever was there
    const reference want(d, all, n_all, state0, n_commit);

    const auto check_out = [&](const std::vector<float> & x, const std::vector<int64_t> & at, int64_t n, double & worst) {
        for (int64_t s = 0; s < d.n_seqs; ++s) {
            worst = std::max(worst, error_of(x.data() + s * n * d.row_out(),
                want.out.data() + (s * n_all + at[s]) * d.row_out(), n * d.row_out(), d.S));
        }
    };
    const auto check_state = [&](const std::vector<float> & x, const std::vector<int64_t> & at, double & worst) {
        for (int64_t s = 0; s < d.n_seqs; ++s) {
            worst = std::max(worst, error_of(x.data() + s * d.n_state(),
                want.states.at(at[s]).data() + s * d.n_state(), d.n_state(), d.S * d.S));
        }
    };

    std::vector<int32_t> replay;
    for (int64_t s = 0; s < d.n_seqs; ++s) {
        replay.insert(replay.end(), { 0, (int32_t) (s % 2) });
    }
    first.set_cells(state0, trace0);
    const std::vector<int64_t> begin(d.n_seqs, 0);
    check_out(first.pass(take(d, all, n_all, begin, length), length, replay), begin, length, t.out);
    const auto state1 = first.get_state();
    const auto trace1 = first.get_trace();
    check_state(state1, std::vector<int64_t>(d.n_seqs, n_commit), t.state);

    std::map<int64_t, std::vector<float>> bits; // state after a run that commits so many tokens
    for (int64_t keep = 0; keep <= n_traced; keep += step) {
        std::vector<int64_t> at(d.n_seqs), then(d.n_seqs);
        for (int64_t s = 0; s < d.n_seqs; ++s) {
            const int64_t n = (keep + 5 * s) % (n_traced + 1);
            replay[2 * s]     = (int32_t) n;
            replay[2 * s + 1] = (int32_t) (1 - s % 2);
            at[s]   = n_commit + n;
            then[s] = at[s] + N_AFTER;
        }
        after.set_cells(state1, trace1);
        check_out(after.pass(take(d, all, n_all, at, N_AFTER), N_AFTER, replay), at, N_AFTER, t.out_after);
        const auto state2 = after.get_state();
        check_state(state2, at, t.state_after);

        if (bitwise) {
            for (int64_t s = 0; s < d.n_seqs; ++s) {
                auto & expected = bits[at[s]];
                if (expected.empty()) {
                    std::vector<int32_t> none(2 * d.n_seqs, 0);
                    again.set_cells(state0, trace0);
                    again.pass(take(d, all, n_all, begin, at[s] + d.n_trace), at[s] + d.n_trace, none);
                    expected = again.get_state();
                }
                const int64_t where = s * d.n_state();
                t.n_bits_differ += memcmp(&state2[where], &expected[where], d.n_state() * sizeof(float)) != 0;
            }
        }

        // what that pass traced, kept in full
        if (keep == n_traced / 2 / step * step) {
            for (int64_t s = 0; s < d.n_seqs; ++s) {
                replay[2 * s]     = (int32_t) std::min(N_AFTER, d.n_trace);
                replay[2 * s + 1] = (int32_t) (s % 2);
            }
            check_out(after.pass(take(d, all, n_all, then, N_AFTER), N_AFTER, replay), then, N_AFTER, t.out_after);
            check_state(after.get_state(), then, t.state_after);
        }
        t.n++;
    }
}

// What the op that the model takes without rollback reaches by the same measure.
double sequential_error(ggml_backend_dev_t cpu, const dims & d, kind what, int64_t length) {
    double worst = 0.0;
    machine m(cpu, path::sequential, d);
    std::mt19937 rng((uint32_t) (length * 31 + d.S * 7 + (int) what));
    const tokens all   = make_tokens(d, what, length, rng);
    const auto   state = random_floats(d.n_seqs * d.n_state(), 0.3f, rng);
    const reference want(d, all, length, state, length);
    m.set_cells(state, std::vector<float>(d.n_seqs * d.n_row()));
    const auto out = m.pass(all, length, std::vector<int32_t>(2 * d.n_seqs, 0));
    worst = std::max(worst, error_of(out.data(), want.out.data(), (int64_t) out.size(), d.S));
    const auto last = m.get_state();
    worst = std::max(worst, error_of(last.data(), want.states.at(length).data(), (int64_t) last.size(), d.S * d.S));
    return worst;
}

// The same measure for one product of the kinds that the portable path consists of: of matrices, and with a vector.
double product_error(ggml_backend_dev_t dev, int64_t n_cols) {
    constexpr int64_t N = 64, BATCH = 16;
    ggml_backend_ptr backend(ggml_backend_dev_init(dev, nullptr));
    ggml_context_ptr ctx(ggml_init({ 8 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true }));
    ggml_tensor * a = ggml_new_tensor_3d(ctx.get(), GGML_TYPE_F32, N, N, BATCH);
    ggml_tensor * b = ggml_new_tensor_3d(ctx.get(), GGML_TYPE_F32, N, n_cols, BATCH);
    ggml_tensor * c = ggml_mul_mat(ctx.get(), a, b);
    ggml_cgraph * graph = ggml_new_graph(ctx.get());
    ggml_build_forward_expand(graph, c);
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(ctx.get(), backend.get()));

    std::mt19937 rng(1);
    const auto x = random_floats(N * N * BATCH, 1.0f, rng), y = random_floats(N * n_cols * BATCH, 1.0f, rng);
    ggml_backend_tensor_set(a, x.data(), 0, ggml_nbytes(a));
    ggml_backend_tensor_set(b, y.data(), 0, ggml_nbytes(b));
    ggml_backend_graph_compute(backend.get(), graph);
    std::vector<float> z(N * n_cols * BATCH);
    ggml_backend_tensor_get(c, z.data(), 0, ggml_nbytes(c));

    std::vector<double> want(z.size());
    for (int64_t i = 0; i < (int64_t) want.size(); ++i) {
        const float * col = &y[i / N * N], * row = &x[i / (N * n_cols) * N * N + i % N * N];
        for (int64_t e = 0; e < N; ++e) { want[i] += (double) row[e] * col[e]; }
    }
    return error_of(z.data(), want.data(), (int64_t) z.size(), N * n_cols);
}

bool test_device(ggml_backend_dev_t dev, ggml_backend_dev_t cpu, bool quick) {
    const std::vector<int64_t> lengths = quick ? std::vector<int64_t>{ 1, 16, 65 } : std::vector<int64_t>{ 1, 15, 16, 17, 63, 64, 65, 200 };

    const bool   is_cpu  = dev == cpu;
    const double product = std::max(product_error(dev, 64), product_error(dev, 1));
    printf("%s (%s): one product has error %.1e\n", ggml_backend_dev_name(dev), ggml_backend_dev_description(dev), product);

    bool ok = true;
    int  n_cases = 0, n_groups = 0;
    for (path how : { path::portable, path::fused }) {
        const double limit = how == path::portable ? std::max(LIMIT, 32 * product) : LIMIT;
        for (int64_t S : { 32, 64, 128 }) {
            for (bool kda : { false, true }) {
                for (auto [H_k, H_v, n_seqs] : { std::array<int64_t, 3>{ 2, 2, 1 }, { 2, 4, 1 }, { 2, 6, 3 } }) {
                    const dims d = { S, H_k, H_v, kda, n_seqs, S == 64 ? 16 : 15 };
                    if (!machine(dev, how, d).can(16)) {
                        printf("  %-8s S %3d %-6s: the device lacks the op, skipped\n", PATH_NAMES[(int) how], (int) S, kda ? "KDA" : "scalar");
                        continue;
                    }
                    for (kind what : KINDS) {
                        const bool ordinary = what == kind::random;
                        if (!ordinary && (n_seqs == 1 || (quick && S != 64))) {
                            continue;
                        }
                        tally  t;
                        double plain = 0.0;
                        for (int64_t length : lengths) {
                            run_case(dev, how, d, what, length, ordinary && !quick ? 1 : 5, t);
                            if (is_cpu && how == path::fused) {
                                plain = std::max(plain, sequential_error(cpu, d, what, length));
                            }
                        }
                        const bool good = t.worst() <= limit && t.n_bits_differ == 0;
                        printf("  %-8s S %3d %-6s heads %d/%d seqs %d %-12s: output %.1e state %.1e, after rollback %.1e %.1e",
                            PATH_NAMES[(int) how], (int) S, kda ? "KDA" : "scalar", (int) H_k, (int) H_v, (int) n_seqs,
                            KIND_NAMES[(int) what], t.out, t.state, t.out_after, t.state_after);
                        if (is_cpu && how == path::fused) {
                            printf(", %d of %d states differ in bits, plain op %.1e", t.n_bits_differ, t.n * (int) n_seqs, plain);
                        }
                        printf("%s\n", good ? "" : "  FAIL");
                        fflush(stdout);
                        ok &= good;
                        n_cases += t.n;
                        n_groups++;
                    }
                }
            }
        }
        printf("%s %s: limit %.1e\n", ggml_backend_dev_name(dev), PATH_NAMES[(int) how], limit);
    }
    printf("%s: %d rollbacks in %d groups, %s\n", ggml_backend_dev_name(dev), n_cases, n_groups, ok ? "OK" : "FAILED");
    return ok;
}

void bench_device(ggml_backend_dev_t dev) {
    printf("%s (%s), us per pass of one layer, best of several\n", ggml_backend_dev_name(dev), ggml_backend_dev_description(dev));
    printf("%-24s %6s %10s %10s %10s\n", "sizes", "tokens", "portable", "fused", "no rewind");
    for (const dims & d : { dims{ 128, 16, 32, false, 1, 15 }, dims{ 128, 16, 16, false, 1, 15 }, dims{ 32, 4, 8, false, 1, 15 } }) {
        for (int64_t n : { 1, 4, 8, 16, 32, 64, 128, 256, 512 }) {
            char sizes[64];
            snprintf(sizes, sizeof(sizes), "S %d, heads %d/%d", (int) d.S, (int) d.H_k, (int) d.H_v);
            printf("%-24s %6d", sizes, (int) n);
            std::mt19937 rng(1);
            const tokens t = make_tokens(d, kind::random, n, rng);
            const auto state = random_floats(d.n_state(), 0.1f, rng), trace = random_floats(d.n_row(), 0.1f, rng);
            for (path how : { path::portable, path::fused, path::sequential }) {
                machine m(dev, how, d);
                if (!m.can(n)) {
                    printf(" %10s", "-");
                    continue;
                }
                m.set_cells(state, trace);
                m.pass(t, n, { 0, 0 });
                double best = INFINITY, spent = 0.0;
                for (int i = 0; i < 200 && (i < 5 || spent < 0.4); ++i) {
                    const auto start = std::chrono::steady_clock::now();
                    m.compute();
                    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                    best = std::min(best, s);
                    spent += s;
                }
                printf(" %10.0f", best * 1e6);
            }
            printf("\n");
            fflush(stdout);
        }
    }
}

} // namespace

int main(int argc, char ** argv) {
    ggml_backend_load_all();

    std::vector<std::string> wanted(argv + 1, argv + argc);
    const auto flag = [&](const char * name) {
        const auto at = std::find(wanted.begin(), wanted.end(), name);
        const bool found = at != wanted.end();
        if (found) {
            wanted.erase(at);
        }
        return found;
    };
    const bool bench = flag("--bench");
    const bool quick = flag("--quick");
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);

    bool ok = true;
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_ACCEL) {
            continue; // helpers of the CPU, without cells of their own
        }
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), ggml_backend_dev_name(dev)) == wanted.end()) {
            continue;
        }
        if (bench) {
            bench_device(dev);
        } else {
            ok &= test_device(dev, cpu, quick);
        }
    }
    if (!bench) {
        printf("%s\n", ok ? "all passed" : "FAILED");
    }
    return ok ? 0 : 1;
}
