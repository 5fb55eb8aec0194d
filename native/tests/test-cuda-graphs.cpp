// On a CUDA device plain steps and rounds are launches of graphs captured before: none is captured anew while the shape
// stays or comes back, none is evaluated node by node. And in each delta-net layer with heads of 128, what comes before
// the delta net is one kernel. By the backend's own counters. And where another program has taken the rest of the card, a
// pass ends in a status, not the process.
//
//     test-cuda-graphs TARGET.gguf DRAFT.gguf
//
// Exit code 77 where there is no CUDA device.

#include "opened-pair.h"

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "gguf.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int k_prompt = 30, k_warm = 4, k_rounds = 8; // the context stays below 256 tokens: the cache's padding
constexpr int k_long_prompt = 700;                     // more than the pair is warmed up for while it is loaded

using read_stats = void (*)(uint64_t * n_direct, uint64_t * n_captured, uint64_t * n_launched);

struct stats { uint64_t direct, captured, launched; };

using count = uint64_t (*)();

struct counters { read_stats graphs; count gdn_inputs; };

counters counters_of_cuda(const char ** device) {
    ggml_backend_load_all();
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(dev);
        if (void * found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_cuda_graph_stats")) {
            *device = ggml_backend_dev_name(dev);
            return { reinterpret_cast<read_stats>(found),
                reinterpret_cast<count>(ggml_backend_reg_get_proc_address(reg, "ggml_backend_cuda_gdn_inputs_count")) };
        }
    }
    return {};
}

// Whether the delta net's heads are of the size that the kernel is made for.
bool has_heads_of_128(const char * target) {
    const std::unique_ptr<gguf_context, decltype(&gguf_free)> file(gguf_init_from_file(target, { /*no_alloc*/ true, nullptr }), gguf_free);
    const int64_t key = file ? gguf_find_key(file.get(), "qwen35.ssm.state_size") : -1;
    return key >= 0 && gguf_get_val_u32(file.get(), key) == 128;
}

// Whether `k_rounds` rounds, of these widths in turns, did nothing but launch.
bool only_launches(opened_pair & pair, read_stats read, bool drafting, const std::vector<int> & n_drafts) {
    pair.read_prompt(k_prompt, drafting, SLIP_VERIFY_GREEDY);
    const int warm = k_warm * int(n_drafts.size());

    stats before = {}, after = {};
    uint64_t n_graphs = 0;
    for (int i = 0; i < warm + k_rounds; ++i) {
        if (i == warm) {
            read(&before.direct, &before.captured, &before.launched);
        }
        const slip_round_result result = pair.round(n_drafts[i % n_drafts.size()]);
        n_graphs += i < warm ? 0 : result.n_graphs_run;
    }
    read(&after.direct, &after.captured, &after.launched);

    const stats did = { after.direct - before.direct, after.captured - before.captured, after.launched - before.launched };
    const bool ok = did.direct == 0 && did.captured == 0 && did.launched >= n_graphs && n_graphs > 0;
    std::string widths;
    for (const int n_draft : n_drafts) {
        widths += (widths.empty() ? "" : ", ") + std::to_string(n_draft + 1);
    }
    std::printf("%-6s %d rounds that verify %s tokens: %llu graphs, %llu launched, %llu captured, %llu evaluated directly\n", ok ? "ok" : "FAILED",
        k_rounds, widths.c_str(), static_cast<unsigned long long>(n_graphs), static_cast<unsigned long long>(did.launched),
        static_cast<unsigned long long>(did.captured), static_cast<unsigned long long>(did.direct));
    return ok;
}

// Tokens of some rounds behind a prompt, and how they end.
std::vector<int32_t> answer(opened_pair & pair, int n_prompt, slip_status & status) {
    std::vector<int32_t> tokens;
    status = pair.try_prompt(n_prompt, true, SLIP_VERIFY_GREEDY);
    for (int i = 0; status == SLIP_OK && i < k_rounds; ++i) {
        slip_round_result result;
        status = pair.try_round(pair.info.block - 1, result);
        if (status == SLIP_OK) {
            tokens.insert(tokens.end(), result.emitted, result.emitted + result.n_accepted + 1);
        }
    }
    return tokens;
}

// A pair that has not answered yet, on a card that is full: an answer that needs no more than was taken while it was loaded
// is the same, a prompt that needs more ends in a status, and there are answers once there is room. Others may give room
// back meanwhile, so what must not happen is another end than these.
bool survives_a_full_card(const char * device, const char * target, const char * draft, const std::vector<int32_t> & wanted) {
    opened_pair pair(device, target, draft, 1024);
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(ggml_backend_dev_by_name(device));
    std::vector<ggml_backend_buffer_ptr> others;
    for (size_t size = size_t(16) << 30; size >= size_t(1) << 20;) {
        others.emplace_back(ggml_backend_buft_alloc_buffer(type, size));
        if (!others.back()) {
            others.pop_back();
            size /= 2;
        }
    }
    const auto ended = [](slip_status status) { return status == SLIP_OK || status == SLIP_ERROR_MEMORY; };
    slip_status few, many, after;
    const bool right = answer(pair, k_prompt, few) == wanted || few == SLIP_ERROR_MEMORY;
    answer(pair, k_long_prompt, many);
    others.clear();
    const bool again = answer(pair, k_prompt, after) == wanted;
    const bool ok    = right && ended(few) && ended(many) && again && after == SLIP_OK;
    std::printf("%-6s on a full card an answer ends with status %d%s, a long prompt with %d, and an answer with %d%s once there is room\n",
        ok ? "ok" : "FAILED", few, right ? "" : " and other tokens", many, after, again ? "" : " and other tokens");
    return ok;
}

} // namespace

int main(int argc, char ** argv) {
    if (argc != 3) {
        std::printf("usage: test-cuda-graphs TARGET.gguf DRAFT.gguf\n");
        return 2;
    }
    const char * device = nullptr;
    const counters counters = counters_of_cuda(&device);
    if (!counters.graphs) {
        std::printf("there is no CUDA device\n");
        return 77;
    }
    opened_pair pair(device, argv[1], argv[2], 1024);

    bool ok = only_launches(pair, counters.graphs, false, { 0 });
    for (const std::vector<int> & n_drafts : { std::vector<int> { 3 }, { pair.info.block - 1 }, { 3, pair.info.block - 1 } }) {
        ok = only_launches(pair, counters.graphs, true, n_drafts) && ok;
    }
    if (has_heads_of_128(argv[1])) {
        const uint64_t n = counters.gdn_inputs();
        std::printf("%-6s %llu times what comes before a delta net was one kernel\n", n > 0 ? "ok" : "FAILED", static_cast<unsigned long long>(n));
        ok = ok && n > 0;
    }
    slip_status status;
    const std::vector<int32_t> wanted = answer(pair, k_prompt, status);
    ok = survives_a_full_card(device, argv[1], argv[2], wanted) && ok;
    std::printf("%s\n", ok ? "all passed" : "FAILED");
    return ok ? 0 : 1;
}
