// A row has the same bits whatever rows stand beside it: a pass over n tokens, n from 2 to 32, against passes over one
// token each, on one device. In whole models (a random qwen35 of two layers for each type, or files) at short and
// long contexts, and operation by operation, which tells where a model's difference comes from.
//
//   test-exact [--device CUDA0] [--types f32,f16,bf16,q8_0,q4_K,q5_K,q6_K] [--kv f16] [--no-flash] [--contexts 10,1000]
//              [--widths 32] [--shape small|4b] [--threads 2] [--no-ops | --no-models] [--quick] [MODEL.gguf...]
//
// With files only these are read. A line a case; exit code 1 if one fails. How a position was reached is looked at
// too: by prefill, by single steps, by a wide pass of which a part was taken back. Prefill in large pieces may take
// other kernels of a GPU: its line says `note` there, not FAILED.
//
// --quick takes some widths, two shapes of products, and attention over the caches of --kv alone, and the CPU reads the
// contexts: for a software renderer, which compiles each shader for seconds and reads 16,000 tokens for an hour.

#include "errors-only.h"
#include "random-qwen35.h"

#include "ggml-backend.h"
#include "llama-cpp.h"
#include "llama.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct options {
    ggml_backend_dev_t       device = nullptr;
    std::vector<ggml_type>   types { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K };
    std::vector<ggml_type>   kv { GGML_TYPE_F16 };
    std::vector<int>         contexts { 10, 1000 };
    int                      widths = 32, threads = 2;
    bool                     flash = true, ops = true, models = true, quick = false;
    qwen35_shape             shape = qwen35_shape::small();
    std::vector<std::string> files;

    bool on_cpu() const { return ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU; }
    bool read_by_cpu() const { return quick && !on_cpu(); }

    // numbers of rows that are compared with one
    std::vector<int> compared() const {
        std::vector<int> all(widths - 1);
        std::iota(all.begin(), all.end(), 2);
        if (quick) { // passes of eight columns and what is left of them, see 0036-vulkan-exact-rows
            const auto left_out = [](int n) { return n != 2 && n != 9 && n != 18 && n != 32; };
            all.erase(std::remove_if(all.begin(), all.end(), left_out), all.end());
        }
        return all;
    }
};

int n_failed = 0;

void report(bool ok, const std::string & what, const std::string & found, const char * otherwise = "FAILED") {
    n_failed += !ok && std::strcmp(otherwise, "FAILED") == 0;
    std::printf("%-6s %s: %s\n", ok ? "ok" : otherwise, what.c_str(), found.c_str());
    std::fflush(stdout);
}

using rows = std::vector<std::vector<float>>; // values by row

// Where a pass over `got.size()` rows first differs from the rows alone. Empty: nowhere.
std::string difference(const rows & alone, const rows & got) {
    if (got.empty()) {
        return "no rows";
    }
    for (size_t r = 0; r < got.size(); ++r) {
        if (got[r].size() == alone[r].size() && std::memcmp(got[r].data(), alone[r].data(), got[r].size() * sizeof(float)) == 0) {
            continue;
        }
        double largest = 0, apart = 0;
        for (size_t i = 0; i < got[r].size(); ++i) {
            largest = std::max(largest, double(std::fabs(alone[r][i])));
            const double d = std::fabs(double(got[r][i]) - alone[r][i]);
            apart = std::isnan(d) ? INFINITY : std::max(apart, d);
        }
        char text[128];
        std::snprintf(text, sizeof(text), "%zu rows, row %zu: %.1e of the largest value", got.size(), r, apart / largest);
        return text;
    }
    return "";
}

bool finite(const rows & values) {
    return std::all_of(values.begin(), values.end(), [](const auto & row) {
        return std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
    });
}

// Each number of rows by `pass(n)`; tells all that differ and where the first does.
void compare(const std::string & what, const std::vector<int> & widths, const rows & alone, const std::function<rows(int)> & pass, const char * otherwise = "FAILED") {
    if (!finite(alone)) { // equal to whatever else is wrong
        return report(false, what, "a row alone is no number");
    }
    std::string first, wrong;
    for (const int n : widths) {
        const rows got = pass(n);
        const std::string found = int(got.size()) == n ? difference(alone, got) : std::to_string(n) + " rows are not computed";
        if (!found.empty()) {
            first  = first.empty() ? found : first;
            wrong += " " + std::to_string(n);
        }
    }
    const bool        all   = int(widths.size()) == widths.back() - 1;
    const std::string which = "1 to " + std::to_string(widths.back()) + " rows" + (all ? "" : ", " + std::to_string(widths.size()) + " widths");
    report(wrong.empty(), what, wrong.empty() ? "the same bits for " + which : first + "; widths" + wrong, otherwise);
}

// --- models ------------------------------------------------------------------

llama_token token_at(int position, int n_vocab) {
    uint32_t x = 2654435761u * uint32_t(position + 1);
    x ^= x >> 15;
    return llama_token((x * 2246822519u >> 8) % uint32_t(n_vocab));
}

struct run {
    llama_context_ptr    ctx;
    int                  n_vocab, held = 0;
    int                  kept_at = 0;
    std::vector<uint8_t> kept; // recurrent state

    run(llama_model * model, const options & opt, ggml_type kv, int n_ctx) : n_vocab(llama_vocab_n_tokens(llama_model_get_vocab(model))) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx           = uint32_t(n_ctx);
        params.n_batch         = 512;
        params.n_ubatch        = 512;
        params.n_rs_seq        = uint32_t(opt.widths - 1);
        params.n_outputs_max   = uint32_t(opt.widths);
        params.type_k          = params.type_v = kv;
        params.flash_attn_type = opt.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
        params.n_threads       = params.n_threads_batch = opt.threads;
        ctx.reset(llama_init_from_model(model, params));
        if (!ctx) {
            std::printf("no context of %d tokens\n", n_ctx);
            std::exit(1);
        }
    }

    // The next `n` tokens in one pass; the last `n_out` of them give logits.
    rows pass(int n, int n_out) {
        llama_batch batch = llama_batch_init(n, 0, 1);
        for (int i = 0; i < n; ++i) {
            batch.token[i]     = token_at(held + i, n_vocab);
            batch.pos[i]       = held + i;
            batch.n_seq_id[i]  = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i]    = i >= n - n_out;
        }
        batch.n_tokens = n;
        const int status = llama_decode(ctx.get(), batch);
        llama_batch_free(batch);
        if (status != 0) {
            std::printf("a pass of %d tokens failed with %d\n", n, status);
            std::exit(1);
        }
        held += n;
        rows out;
        for (int i = n - n_out; i < n; ++i) {
            const float * logits = llama_get_logits_ith(ctx.get(), i);
            out.emplace_back(logits, logits + n_vocab);
        }
        return out;
    }
    void prefill(int to, int piece) {
        while (held < to) { pass(std::min(piece, to - held), 0); }
    }
    void clear() {
        llama_memory_clear(llama_get_memory(ctx.get()), true);
        held = 0;
    }
    // All that is held, and back.
    std::vector<uint8_t> state() {
        std::vector<uint8_t> out(llama_state_seq_get_size(ctx.get(), 0));
        llama_state_seq_get_data(ctx.get(), out.data(), out.size(), 0);
        return out;
    }
    void take(const std::vector<uint8_t> & state, int n) {
        clear();
        held = n;
        if (llama_state_seq_set_data(ctx.get(), state.data(), state.size(), 0) != state.size()) {
            std::printf("a state that the CPU read is refused\n");
            std::exit(1);
        }
    }
    // What the last pass read may go again.
    bool take_back(int n) {
        held -= n;
        return llama_memory_seq_rm(llama_get_memory(ctx.get()), 0, held, -1);
    }
    void keep() {
        kept.resize(llama_state_seq_get_size_ext(ctx.get(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
        llama_state_seq_get_data_ext(ctx.get(), kept.data(), kept.size(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
        kept_at = held;
    }
    void restore() {
        held = kept_at;
        if (llama_state_seq_set_data_ext(ctx.get(), kept.data(), kept.size(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == 0 ||
                !llama_memory_seq_rm(llama_get_memory(ctx.get()), 0, held, -1)) {
            std::printf("the state cannot be restored\n");
            std::exit(1);
        }
    }
};

llama_model_ptr load(const std::string & path, ggml_backend_dev_t device) {
    const bool on_cpu = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
    ggml_backend_dev_t devices[] = { on_cpu ? nullptr : device, nullptr };
    llama_model_params params = llama_model_default_params();
    params.devices      = devices;
    params.n_gpu_layers = on_cpu ? 0 : 99;
    params.split_mode   = LLAMA_SPLIT_MODE_NONE;
    return llama_model_ptr(llama_model_load_from_file(path.c_str(), params));
}

// States by cache and context, of models of one shape: what their weights are is nothing to a cache.
using states = std::map<std::pair<ggml_type, int>, std::vector<uint8_t>>;

const std::vector<uint8_t> & state_by_cpu(const std::string & path, const options & opt, ggml_type kv, int context, states & known) {
    std::vector<uint8_t> & state = known[{ kv, context }];
    if (state.empty()) {
        const llama_model_ptr model = load(path, ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
        run reader(model.get(), opt, kv, context + opt.widths + 8);
        reader.prefill(context, 512);
        state = reader.state();
    }
    return state;
}

void test_model(const std::string & name, const std::string & path, const options & opt, states & known) {
    const llama_model_ptr model = load(path, opt.device);
    if (!model) {
        report(false, name, "it cannot be loaded");
        return;
    }
    const int longest = *std::max_element(opt.contexts.begin(), opt.contexts.end());
    for (const ggml_type kv : opt.kv) {
        run r(model.get(), opt, kv, longest + opt.widths + 8);
        for (const int context : opt.contexts) {
            const std::string what = name + ", cache " + ggml_type_name(kv) + (opt.flash ? "" : " without flash attention") +
                ", context " + std::to_string(context);
            if (opt.read_by_cpu()) {
                r.take(state_by_cpu(path, opt, kv, context, known), context);
            } else {
                r.clear();
                r.prefill(context, 512);
            }
            r.keep();
            rows alone;
            for (int i = 0; i < opt.widths; ++i) { alone.push_back(r.pass(1, 1)[0]); }

            compare(what, opt.compared(), alone, [&](int n) {
                r.restore();
                return r.pass(n, n);
            });

            // behind a verify of which a part was accepted
            std::string wrong;
            const int n = std::min(16, opt.widths);
            for (const int kept : { 1, n / 2, n - 1 }) {
                r.restore();
                r.pass(n, n);
                if (!r.take_back(n - kept) || !difference({ alone[kept] }, r.pass(1, 1)).empty()) {
                    wrong += " " + std::to_string(kept);
                }
            }
            report(wrong.empty(), what, wrong.empty() ? "the same bits behind a verify" : "other bits behind a verify of " + std::to_string(n) + " with accepted:" + wrong);

            if (opt.on_cpu()) {
                wrong.clear();
                for (const int threads : { 1, 2, 3, 5 }) {
                    llama_set_n_threads(r.ctx.get(), threads, threads);
                    for (const int width : { 1, std::min(16, opt.widths) }) {
                        r.restore();
                        if (!difference(alone, r.pass(width, width)).empty()) {
                            wrong += " " + std::to_string(threads);
                        }
                    }
                }
                llama_set_n_threads(r.ctx.get(), opt.threads, opt.threads);
                report(wrong.empty(), what, wrong.empty() ? "the same bits for 1, 2, 3 and 5 threads" : "other bits, threads:" + wrong);
            }

            // the context itself, read in other pieces
            if (context <= 1000 && !opt.read_by_cpu()) {
                for (const int piece : { 16, 1 }) {
                    r.clear();
                    r.prefill(context, piece);
                    const std::string found = difference(alone, r.pass(1, 1));
                    report(found.empty(), what + ", read in pieces of " + std::to_string(piece) + " instead of 512", found.empty() ? "the same bits" : found, opt.on_cpu() ? "FAILED" : "note");
                }
            }
        }
    }
}

struct temporary_file {
    std::string path;
    explicit temporary_file(const std::string & name) : path((std::filesystem::temp_directory_path() / name).string()) {}
    ~temporary_file() { std::error_code ignored; std::filesystem::remove(path, ignored); }
};

void test_random_models(const options & opt) {
    const auto tag = std::chrono::steady_clock::now().time_since_epoch().count();
    states known;
    for (const ggml_type type : opt.types) {
        temporary_file file("test-exact-" + std::to_string(tag) + "-" + ggml_type_name(type) + ".gguf");
        if (!write_random_qwen35(file.path, opt.shape, type)) {
            report(false, ggml_type_name(type), "the random model cannot be written to " + file.path);
            continue;
        }
        test_model(std::string("model ") + ggml_type_name(type), file.path, opt, known);
    }
}

// --- operations --------------------------------------------------------------

// A graph over n rows. Inputs that differ by row have the rows in their last dimension and get the same values for a
// row wherever it stands; so does the result.
constexpr int k_all_rows = 32;

struct graph {
    struct input { ggml_tensor * tensor; bool by_row; };
    using values = std::vector<std::vector<uint8_t>>; // of all rows, one for each input

    ggml_context *     ctx;
    int64_t            n;    // rows
    values &           made; // for all graphs of a case, by the first of them
    std::mt19937       random { 7 };
    std::vector<input> inputs;

    graph(ggml_context * ctx, int64_t n, values & made) : ctx(ctx), n(n), made(made) {}

    ggml_tensor * add(ggml_tensor * x, bool by_row, const std::function<std::vector<uint8_t>()> & make) {
        if (made.size() == inputs.size()) {
            made.push_back(make());
        }
        inputs.push_back({ x, by_row });
        return x;
    }
    ggml_tensor * weights(ggml_tensor * x, float sigma) {
        return add(x, false, [&] { return random_weights(x->type, x->ne[0], ggml_nrows(x), sigma, random); });
    }
    ggml_tensor * rows(ggml_tensor * x) {
        return add(x, true, [&] { return random_weights(x->type, x->ne[0], ggml_nrows(x) / n * k_all_rows, 1.0f, random); });
    }
};

using build = std::function<ggml_tensor *(graph &)>;

// Rows `first` to `first + n - 1`. Empty: the device cannot.
rows run_graph(ggml_backend_t backend, const build & make, graph::values & values, int first, int n) {
    ggml_context_ptr ctx(ggml_init({ 64 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, /*no_alloc*/ true }));
    graph g(ctx.get(), n, values);
    ggml_tensor * out = make(g);
    ggml_cgraph * nodes = ggml_new_graph(ctx.get());
    ggml_build_forward_expand(nodes, out);
    for (int i = 0; i < ggml_graph_n_nodes(nodes); ++i) {
        if (!ggml_backend_supports_op(backend, ggml_graph_node(nodes, i))) {
            return {};
        }
    }
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(ctx.get(), backend));
    for (size_t i = 0; i < g.inputs.size(); ++i) {
        const size_t size = ggml_nbytes(g.inputs[i].tensor);
        ggml_backend_tensor_set(g.inputs[i].tensor, values[i].data() + (g.inputs[i].by_row ? size / n * first : 0), 0, size);
    }
    ggml_backend_graph_compute(backend, nodes);
    std::vector<float> all(ggml_nelements(out));
    ggml_backend_tensor_get(out, all.data(), 0, ggml_nbytes(out));
    rows result;
    for (int r = 0; r < n; ++r) {
        result.emplace_back(all.begin() + all.size() / n * r, all.begin() + all.size() / n * (r + 1));
    }
    return result;
}

void test_op(ggml_backend_t backend, const options & opt, const std::string & what, const build & make, const char * otherwise = "FAILED") {
    rows alone;
    graph::values values;
    for (int r = 0; r < opt.widths; ++r) {
        const rows one = run_graph(backend, make, values, r, 1);
        if (one.empty()) {
            report(false, what, "not on this device", "note");
            return;
        }
        alone.push_back(one[0]);
    }
    compare(what, opt.compared(), alone, [&](int n) { return run_graph(backend, make, values, 0, n); }, otherwise);
}

// k values a row in, m out
void test_products(ggml_backend_t backend, const options & opt) {
    struct shape { int64_t k, m; };
    std::vector<shape> shapes { { 512, 1024 }, { 1024, 37 }, { 2560, 32 }, { 2560, 4096 }, { 9216, 2560 }, { 3328, 48 }, { 4096, 2560 } };
    if (opt.quick) {
        const int64_t n_embd = opt.shape.n_embd;
        shapes = { { n_embd, 2*n_embd }, { 1024, 37 } };
    }
    for (const ggml_type type : opt.types) {
        for (const shape s : shapes) {
            test_op(backend, opt, std::string("product ") + ggml_type_name(type) + " " + std::to_string(s.k) + " x " + std::to_string(s.m), [&](graph & g) {
                ggml_tensor * w = g.weights(ggml_new_tensor_2d(g.ctx, type, s.k, s.m), 1.0f / std::sqrt(float(s.k)));
                ggml_tensor * x = g.rows(ggml_new_tensor_2d(g.ctx, GGML_TYPE_F32, s.k, g.n));
                return ggml_mul_mat(g.ctx, w, x);
            });
        }
    }
}

// Each row sees one key more than the row before it, the last one all of them.
ggml_tensor * causal_mask(graph & g, int64_t n_kv) {
    ggml_tensor * mask = ggml_new_tensor_2d(g.ctx, GGML_TYPE_F16, n_kv, g.n);
    return g.add(mask, true, [&] {
        std::vector<uint8_t> values(n_kv * k_all_rows * sizeof(ggml_fp16_t));
        for (int64_t r = 0; r < k_all_rows; ++r) {
            for (int64_t i = 0; i < n_kv; ++i) {
                const ggml_fp16_t v = ggml_fp32_to_fp16(i <= n_kv - k_all_rows + r ? 0.0f : -INFINITY);
                std::memcpy(values.data() + (r * n_kv + i) * sizeof(v), &v, sizeof(v));
            }
        }
        return values;
    });
}

void test_attention(ggml_backend_t backend, const options & opt) {
    const int64_t hd = opt.shape.head_dim, heads = opt.shape.n_head, heads_kv = opt.shape.n_head_kv;
    const float scale = 1.0f / std::sqrt(float(hd));
    for (const ggml_type kv : opt.quick ? opt.kv : std::vector<ggml_type> { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0 }) {
        for (const int context : opt.contexts) {
            const int64_t n_kv = (context + k_all_rows + 255) / 256 * 256;
            const std::string of = std::string("attention ") + ggml_type_name(kv) + " over " + std::to_string(n_kv) + " keys";
            const auto queries = [&](graph & g) {
                return ggml_permute(g.ctx, g.rows(ggml_new_tensor_3d(g.ctx, GGML_TYPE_F32, hd, heads, g.n)), 0, 2, 1, 3);
            };
            const auto cache = [&](graph & g) {
                return ggml_permute(g.ctx, g.weights(ggml_new_tensor_3d(g.ctx, kv, hd, heads_kv, n_kv), 1.0f), 0, 2, 1, 3);
            };
            test_op(backend, opt, "flash " + of, [&](graph & g) {
                ggml_tensor * q = queries(g), * k = cache(g), * v = cache(g);
                return ggml_flash_attn_ext(g.ctx, q, k, v, causal_mask(g, n_kv), scale, 0.0f, 0.0f);
            });
            if (kv == GGML_TYPE_Q8_0 || (opt.quick && opt.flash && !opt.on_cpu())) {
                continue; // a transposed cache holds floats, and a GPU is asked for flash attention
            }
            test_op(backend, opt, of, [&](graph & g) {
                ggml_tensor * q = queries(g), * k = cache(g);
                ggml_tensor * v = g.weights(ggml_new_tensor_3d(g.ctx, kv, n_kv, hd, heads_kv), 1.0f);
                ggml_tensor * weights = ggml_soft_max_ext(g.ctx, ggml_mul_mat(g.ctx, k, q), causal_mask(g, n_kv), scale, 0.0f);
                return ggml_cont(g.ctx, ggml_permute(g.ctx, ggml_mul_mat(g.ctx, v, weights), 0, 2, 1, 3));
            }, opt.on_cpu() || !opt.flash ? "FAILED" : "note");
        }
    }
}

void test_small_ops(ggml_backend_t backend, const options & opt) {
    const int64_t n_embd = opt.shape.n_embd, heads = opt.shape.n_value_heads, dim = opt.shape.state_dim;
    const auto row = [&](graph & g, int64_t n) { return g.rows(ggml_new_tensor_2d(g.ctx, GGML_TYPE_F32, n, g.n)); };
    test_op(backend, opt, "norm", [&](graph & g) {
        ggml_tensor * w = g.weights(ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, n_embd), 1.0f);
        return ggml_mul(g.ctx, ggml_rms_norm(g.ctx, row(g, n_embd), 1e-6f), w);
    });
    test_op(backend, opt, "gated norm of heads", [&](graph & g) {
        ggml_tensor * w = g.weights(ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, dim), 1.0f);
        ggml_tensor * x = ggml_reshape_3d(g.ctx, row(g, dim * heads), dim, heads, g.n), * z = ggml_reshape_3d(g.ctx, row(g, dim * heads), dim, heads, g.n);
        return ggml_mul(g.ctx, ggml_mul(g.ctx, ggml_rms_norm(g.ctx, x, 1e-6f), w), ggml_silu(g.ctx, z));
    });
    test_op(backend, opt, "unit norm of heads", [&](graph & g) {
        return ggml_l2_norm(g.ctx, ggml_reshape_3d(g.ctx, row(g, dim * heads), dim, heads, g.n), 1e-6f);
    });
    test_op(backend, opt, "gated linear unit", [&](graph & g) { return ggml_swiglu_split(g.ctx, row(g, opt.shape.n_ff), row(g, opt.shape.n_ff)); });
    test_op(backend, opt, "gates", [&](graph & g) {
        ggml_tensor * b = g.weights(ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, heads), 1.0f);
        ggml_tensor * a = g.weights(ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, heads), 1.0f);
        ggml_tensor * decay = ggml_mul(g.ctx, ggml_softplus(g.ctx, ggml_add(g.ctx, row(g, heads), b)), a);
        return ggml_concat(g.ctx, decay, ggml_sigmoid(g.ctx, row(g, heads)), 0);
    });
    test_op(backend, opt, "residual", [&](graph & g) { return ggml_add(g.ctx, row(g, n_embd), row(g, n_embd)); });
}

// Which kernels computed the products of few columns on a CUDA device, see GGML_CUDA_FEW_SHARED in mmfq.cu.
void tell_few_columns(const options & opt) {
    using read_count = void (*)(uint64_t * n_whole, uint64_t * n_small);
    const auto read = reinterpret_cast<read_count>(
        ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(opt.device), "ggml_backend_cuda_few_columns_count"));
    if (read) {
        uint64_t whole = 0, small = 0;
        read(&whole, &small);
        std::printf("products of few columns: %llu with tiles of full size, %llu with small ones\n", static_cast<unsigned long long>(whole),
            static_cast<unsigned long long>(small));
    }
}

// --- command line ------------------------------------------------------------

std::vector<std::string> parts(const std::string & list) {
    std::vector<std::string> out;
    std::stringstream stream(list);
    for (std::string item; std::getline(stream, item, ',');) { out.push_back(item); }
    return out;
}

std::vector<ggml_type> types(const std::string & list) {
    std::vector<ggml_type> out;
    for (const std::string & name : parts(list)) {
        int t = 0;
        while (t < GGML_TYPE_COUNT && (!ggml_type_name(ggml_type(t)) || name != ggml_type_name(ggml_type(t)))) { ++t; }
        if (t == GGML_TYPE_COUNT) {
            std::printf("there is no type %s\n", name.c_str());
            std::exit(2);
        }
        out.push_back(ggml_type(t));
    }
    return out;
}

options read_options(int argc, char ** argv) {
    options opt;
    opt.device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const auto value = [&]() -> std::string {
            if (i + 1 == argc) {
                std::printf("%s needs a value\n", name.c_str());
                std::exit(2);
            }
            return argv[++i];
        };
        if      (name == "--types")     { opt.types   = types(value()); }
        else if (name == "--kv")        { opt.kv      = types(value()); }
        else if (name == "--widths")    { opt.widths  = std::min(std::max(2, std::atoi(value().c_str())), k_all_rows); }
        else if (name == "--threads")   { opt.threads = std::atoi(value().c_str()); }
        else if (name == "--quick")     { opt.quick   = true; }
        else if (name == "--no-flash")  { opt.flash   = false; }
        else if (name == "--no-ops")    { opt.ops     = false; }
        else if (name == "--no-models") { opt.models  = false; }
        else if (name == "--shape")     { opt.shape   = value() == "4b" ? qwen35_shape::of_4b() : qwen35_shape::small(); }
        else if (name == "--contexts") {
            opt.contexts.clear();
            for (const std::string & n : parts(value())) { opt.contexts.push_back(std::atoi(n.c_str())); }
        } else if (name == "--device") {
            const std::string device = value();
            opt.device = ggml_backend_dev_by_name(device.c_str());
            if (!opt.device) {
                std::printf("there is no device %s\n", device.c_str());
                std::exit(2);
            }
        } else if (name.rfind("--", 0) == 0) {
            std::printf("unknown option %s\n", name.c_str());
            std::exit(2);
        } else {
            opt.files.push_back(name);
        }
    }
    return opt;
}

} // namespace

int main(int argc, char ** argv) {
    log_errors_only();
    ggml_backend_load_all();
    const options opt = read_options(argc, argv);
    std::printf("%s: %s\n", ggml_backend_dev_name(opt.device), ggml_backend_dev_description(opt.device));

    if (opt.ops && opt.files.empty()) {
        ggml_backend_ptr backend(ggml_backend_dev_init(opt.device, nullptr));
        const auto set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(
            ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(opt.device), "ggml_backend_set_n_threads"));
        if (set_threads) {
            set_threads(backend.get(), opt.threads);
        }
        test_products(backend.get(), opt);
        test_attention(backend.get(), opt);
        test_small_ops(backend.get(), opt);
    }
    for (const std::string & file : opt.files) {
        states known;
        test_model(std::filesystem::path(file).filename().string(), file, opt, known);
    }
    if (opt.models && opt.files.empty()) {
        test_random_models(opt);
    }
    tell_few_columns(opt);
    std::printf("%s\n", n_failed ? "FAILED" : "all passed");
    return n_failed > 0;
}
