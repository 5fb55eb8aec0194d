// On a CUDA device plain steps and rounds are launches of graphs captured before: none is captured anew while the shape
// stays, none is evaluated node by node. By the backend's own counters.
//
//     test-cuda-graphs TARGET.gguf DRAFT.gguf
//
// Exit code 77 where there is no CUDA device.

#include "opened-pair.h"

#include "ggml-backend.h"

#include <cstdint>
#include <cstdio>

namespace {

constexpr int k_prompt = 30, k_warm = 4, k_rounds = 8; // the context stays below 256 tokens: the cache's padding

using read_stats = void (*)(uint64_t * n_direct, uint64_t * n_captured, uint64_t * n_launched);

struct stats { uint64_t direct, captured, launched; };

read_stats stats_of_cuda(const char ** device) {
    ggml_backend_load_all();
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        if (void * found = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev), "ggml_backend_cuda_graph_stats")) {
            *device = ggml_backend_dev_name(dev);
            return reinterpret_cast<read_stats>(found);
        }
    }
    return nullptr;
}

// Whether `k_rounds` rounds of one width did nothing but launch.
bool only_launches(opened_pair & pair, read_stats read, bool drafting, int n_draft) {
    pair.read_prompt(k_prompt, drafting, SLIP_VERIFY_GREEDY);

    stats before = {}, after = {};
    uint64_t n_graphs = 0;
    for (int i = 0; i < k_warm + k_rounds; ++i) {
        if (i == k_warm) {
            read(&before.direct, &before.captured, &before.launched);
        }
        const slip_round_result result = pair.round(n_draft);
        n_graphs += i < k_warm ? 0 : result.n_graphs_run;
    }
    read(&after.direct, &after.captured, &after.launched);

    const stats did = { after.direct - before.direct, after.captured - before.captured, after.launched - before.launched };
    const bool ok = did.direct == 0 && did.captured == 0 && did.launched >= n_graphs && n_graphs > 0;
    std::printf("%-6s %d rounds that verify %d tokens: %llu graphs, %llu launched, %llu captured, %llu evaluated directly\n", ok ? "ok" : "FAILED",
        k_rounds, n_draft + 1, static_cast<unsigned long long>(n_graphs), static_cast<unsigned long long>(did.launched),
        static_cast<unsigned long long>(did.captured), static_cast<unsigned long long>(did.direct));
    return ok;
}

} // namespace

int main(int argc, char ** argv) {
    if (argc != 3) {
        std::printf("usage: test-cuda-graphs TARGET.gguf DRAFT.gguf\n");
        return 2;
    }
    const char * device = nullptr;
    const read_stats read = stats_of_cuda(&device);
    if (!read) {
        std::printf("there is no CUDA device\n");
        return 77;
    }
    opened_pair pair(device, argv[1], argv[2], 1024);

    bool ok = only_launches(pair, read, false, 0);
    for (const int n_draft : { 3, pair.info.block - 1 }) {
        ok = only_launches(pair, read, true, n_draft) && ok;
    }
    std::printf("%s\n", ok ? "all passed" : "FAILED");
    return ok ? 0 : 1;
}
