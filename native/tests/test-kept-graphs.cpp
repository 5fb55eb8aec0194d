// A graph that was kept gives what one that is built anew gives, whatever happened in between: two contexts do the same,
// one that keeps graphs and one that keeps none (LLAMA_KEPT_GRAPHS=0), and every logit has the same bits.
//
//     test-kept-graphs [--device NAME] [--quick] [MODEL.gguf ...]
//
// Small random models are made first: a Qwen3.5, which takes tokens back, and a Llama, whose positions are shifted and to
// which an adapter is put and taken away. Exit code 1 if a check fails.

#include "environment.h"
#include "errors-only.h"
#include "random-llama.h"
#include "random-qwen35.h"

#include "ggml-backend.h"
#include "llama-cpp.h"
#include "llama-ext.h"
#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int k_seqs = 2, k_ctx = 1024, k_trace = 15, k_script = 400, k_kept = 8;

int n_failed = 0;

bool check(bool ok, const std::string & what) {
    if (!ok) {
        std::printf("  FAILED: %s\n", what.c_str());
        ++n_failed;
    }
    return ok;
}

void keep_graphs(const char * n) {
    set_environment("LLAMA_KEPT_GRAPHS", n);
}

struct token { int seq; llama_token id; bool output; };

// A context, and what its sequences hold.
struct run {
    llama_sampler_ptr sampler; // of a sequence, in the graph
    llama_context_ptr ctx;
    llama_memory_t    memory;
    int n_vocab, n_embd;

    run(llama_model * model, bool keeps) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx     = k_ctx * k_seqs;
        params.n_batch   = params.n_ubatch = 128;
        params.n_seq_max = k_seqs;
        params.n_rs_seq  = k_trace;
        params.n_threads = params.n_threads_batch = 1;
        params.embeddings = false;
        keep_graphs(keeps ? nullptr : "0");
        ctx.reset(llama_init_from_model(model, params));
        keep_graphs(nullptr);
        if (!ctx) {
            std::printf("no context\n");
            std::exit(1);
        }
        memory  = llama_get_memory(ctx.get());
        n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
        n_embd  = llama_model_n_embd(model);
    }

    int n_reused() { return llama_perf_context(ctx.get()).n_reused; }

    void sample(int seq, uint32_t seed) {
        sampler.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
        llama_sampler_chain_add(sampler.get(), llama_sampler_init_dist(seed));
        if (!llama_set_sampler(ctx.get(), seq, sampler.get())) {
            sampler.reset();
        }
    }

    // Logits of all outputs, or tokens where the graph chooses; empty where the pass failed.
    std::vector<float> pass(const std::vector<token> & tokens, const std::vector<int> & at, bool chooses, bool embeds) {
        llama_batch batch = llama_batch_init(int(tokens.size()), 0, 1);
        std::vector<int> pos = at;
        for (const token & t : tokens) {
            const int i = batch.n_tokens++;
            batch.token[i]     = t.id;
            batch.pos[i]       = pos[t.seq]++;
            batch.n_seq_id[i]  = 1;
            batch.seq_id[i][0] = t.seq;
            batch.logits[i]    = t.output;
        }
        std::vector<float> out;
        if (llama_decode(ctx.get(), batch) == 0) {
            out.push_back(0);
            for (int i = 0; i < batch.n_tokens; ++i) {
                if (!tokens[i].output) {
                    continue;
                }
                if (chooses) {
                    out.push_back(float(llama_get_out_token_ith(ctx.get(), i)));
                    continue;
                }
                const llama_token sampled = sampler ? llama_get_sampled_token_ith(ctx.get(), i) : LLAMA_TOKEN_NULL;
                if (sampled != LLAMA_TOKEN_NULL) {
                    out.push_back(float(sampled));
                    continue;
                }
                const float * logits = llama_get_logits_ith(ctx.get(), i);
                out.insert(out.end(), logits, logits + n_vocab);
                if (embeds) {
                    const float * embd = llama_get_embeddings_ith(ctx.get(), i);
                    out.insert(out.end(), embd, embd + n_embd);
                }
            }
        }
        llama_batch_free(batch);
        return out;
    }
};

bool same(const std::vector<float> & a, const std::vector<float> & b) {
    return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// What can happen to a context, by chance, and passes of many widths between.
void script(llama_model * model, llama_adapter_lora * adapter, int seed) {
    run kept(model, true), fresh(model, false);
    std::mt19937 random(seed);
    const auto below = [&](int n) { return int(random() % n); };
    const auto both  = [&](auto && act) { act(kept); act(fresh); };

    std::vector<int> held(k_seqs, 0);
    const bool can_shift = llama_memory_can_shift(kept.memory);
    bool chooses = false, embeds = false;
    int  n_passes = 0, n_other = 0, last_seq = 0, last_n = 0;

    for (int step = 0; step < k_script; ++step) {
        const int what = below(12);
        if (what == 0 && held[last_seq] > last_n && last_n > 0) { // takes back what the last pass brought
            const int n = 1 + below(std::min(last_n, k_trace));
            bool done[2], *d = done;
            both([&](run & r) { *d++ = llama_memory_seq_rm(r.memory, last_seq, held[last_seq] - n, -1); });
            check(done[0] == done[1], "taking back");
            held[last_seq] -= done[0] ? n : 0;
            last_n = 0;
            ++n_other;
        } else if (what == 1) { // what changes the graph
            switch (below(4)) {
                case 0: chooses = !chooses; both([&](run & r) { llama_set_out_argmax(r.ctx.get(), chooses); }); break;
                case 1: embeds  = !embeds;  both([&](run & r) { llama_set_embeddings(r.ctx.get(), embeds); }); break;
                case 2: if (adapter) {
                    float scale = float(below(3));
                    both([&](run & r) { llama_set_adapters_lora(r.ctx.get(), &adapter, 1, &scale); });
                } break;
                case 3: { const bool causal = below(2) == 0; both([&](run & r) { llama_set_causal_attn(r.ctx.get(), causal); }); } break;
            }
            ++n_other;
        } else if (what == 2 && can_shift && held[0] > 40) { // drops some of the text, and closes the gap
            const int n = 1 + below(16);
            both([&](run & r) {
                llama_memory_seq_rm(r.memory, 0, 8, 8 + n);
                llama_memory_seq_add(r.memory, 0, 8 + n, -1, -n);
            });
            held[0] -= n;
            last_n = 0;
            ++n_other;
        } else if (what == 3 && below(4) == 0) { // another sequence's text
            both([&](run & r) {
                llama_memory_seq_rm(r.memory, 1, -1, -1);
                llama_memory_seq_cp(r.memory, 0, 1, -1, -1);
            });
            held[1] = held[0];
            last_n = 0;
            ++n_other;
        } else {
            const int widths[] = { 1, 1, 1, 2, 3, 4, 5, 8, 12, 16, 16, 31, 32, 33, 100 };
            std::vector<token> tokens;
            const int  n_first = below(3);      // 0: both sequences
            const int  outputs = below(4);      // 0: none, 1: the last, else all
            for (int seq = 0; seq < k_seqs; ++seq) {
                if (n_first != 0 && seq != n_first - 1) {
                    continue;
                }
                const int n = widths[below(sizeof(widths) / sizeof(widths[0]))] / (n_first == 0 ? 2 : 1);
                if (held[seq] + n > k_ctx) {
                    both([&](run & r) { llama_memory_seq_rm(r.memory, seq, -1, -1); });
                    held[seq] = 0;
                }
                for (int i = 0; i < n; ++i) {
                    tokens.push_back({ seq, llama_token(below(kept.n_vocab)), outputs > 1 || (outputs == 1 && i + 1 == n) });
                }
                last_seq = seq;
                last_n   = n;
            }
            if (tokens.empty()) {
                continue;
            }
            const std::vector<float> a = kept.pass(tokens, held, chooses, embeds), b = fresh.pass(tokens, held, chooses, embeds);
            for (const token & t : tokens) {
                ++held[t.seq];
            }
            ++n_passes;
            if (!check(same(a, b), "pass " + std::to_string(n_passes) + " of " + std::to_string(tokens.size()) + " tokens")) {
                return;
            }
        }
    }
    std::printf("  script %d: %d passes, %d other acts; of the graphs %d were used again, where none is kept %d\n", seed, n_passes, n_other,
        kept.n_reused(), fresh.n_reused());
    check(kept.n_reused() > fresh.n_reused(), "no graph was kept");
}

// Widths in turns: each is built once, and again where the cache has grown by a step.
void turns(llama_model * model) {
    run kept(model, true);
    const int widths[] = { 1, 16, 4, 8, 2, 12 };
    const int n_widths = sizeof(widths) / sizeof(widths[0]), n_rounds = 5;
    static_assert(sizeof(widths) / sizeof(widths[0]) <= k_kept, "more than are kept");
    std::vector<int> held = { 20, 0 };
    kept.pass(std::vector<token>(held[0], { 0, 7, true }), { 0, 0 }, false, false); // a sequence that begins has a graph of its own
    for (int round = 0; round < n_rounds; ++round) { // 235 tokens
        for (const int n : widths) {
            kept.pass(std::vector<token>(n, { 0, 7, true }), held, false, false);
            held[0] += n;
        }
    }
    std::printf("  %d passes of %d widths in turns: %d graphs used again\n", n_rounds * n_widths, n_widths, kept.n_reused());
    check(kept.n_reused() == (n_rounds - 1) * n_widths, "a width that comes back is built anew");
}

// One sequence's tokens are drawn in the graph, the other's are not: a sampler knows the inputs of one graph only.
void samplers(llama_model * model) {
    run kept(model, true), fresh(model, false);
    kept.sample(0, 7);
    fresh.sample(0, 7);
    if (!check(kept.sampler && fresh.sampler, "a sampler cannot be in the graph")) {
        return;
    }
    std::vector<int> held(k_seqs, 0);
    int n_drawn = 0;
    for (int i = 0; i < 60; ++i) {
        const int seq = i % 3 == 2, n = i % 5 == 4 ? 4 : 1;
        std::vector<token> tokens(n, { seq, llama_token(11 + i), false });
        tokens.back().output = true;
        const std::vector<float> a = kept.pass(tokens, held, false, false), b = fresh.pass(tokens, held, false, false);
        held[seq] += n;
        n_drawn += a.size() == 2;
        if (!check(same(a, b), "pass " + std::to_string(i) + " beside a sampler")) {
            return;
        }
    }
    check(n_drawn == 40, "tokens that were drawn in the graph: " + std::to_string(n_drawn));
    std::printf("  %d tokens drawn in the graph\n", n_drawn);
}

void test_model(const std::string & path, const std::string & adapter_path, ggml_backend_dev_t device, int n_scripts) {
    ggml_backend_dev_t devices[2] = { device, nullptr };
    llama_model_params params = llama_model_default_params();
    params.devices      = devices;
    params.n_gpu_layers = 999;
    const llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    if (!check(model != nullptr, "cannot load " + path)) {
        return;
    }
    const llama_adapter_lora_ptr adapter(adapter_path.empty() ? nullptr : llama_adapter_lora_init(model.get(), adapter_path.c_str()));
    check(adapter_path.empty() || adapter, "cannot load the adapter");
    turns(model.get());
    samplers(model.get());
    for (int seed = 1; seed <= n_scripts; ++seed) {
        script(model.get(), adapter.get(), seed);
    }
}

} // namespace

int main(int argc, char ** argv) {
    log_errors_only();
    ggml_backend_load_all();
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    std::vector<std::string> models;
    int n_scripts = 4;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--device" && i + 1 < argc) {
            device = ggml_backend_dev_by_name(argv[++i]);
        } else if (std::string(argv[i]) == "--quick") {
            n_scripts = 1;
        } else {
            models.push_back(argv[i]);
        }
    }
    if (!device) {
        std::printf("there is no such device\n");
        return 2;
    }
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("test-kept-graphs-" + std::to_string(std::random_device()()));
    std::filesystem::create_directory(folder);
    const std::string qwen = (folder / "qwen35.gguf").string(), llama = (folder / "llama.gguf").string(), lora = (folder / "adapter.gguf").string();
    if (check(write_random_qwen35(qwen, qwen35_shape::small(), GGML_TYPE_Q8_0) && write_random_llama(llama) && write_random_adapter(lora), "cannot write")) {
        std::printf("a random Qwen3.5\n");
        test_model(qwen, "", device, n_scripts);
        std::printf("a random Llama\n");
        test_model(llama, lora, device, n_scripts);
    }
    std::filesystem::remove_all(folder);
    for (const std::string & path : models) {
        std::printf("%s\n", path.c_str());
        test_model(path, "", device, n_scripts);
    }
    std::printf(n_failed ? "%d failed\n" : "all passed\n", n_failed);
    return n_failed != 0;
}
