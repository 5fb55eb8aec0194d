#include "llama-kv-step.h"

#include <algorithm>
#include <cstdlib>

uint32_t llama_kv_step(ggml_backend_buffer_t buffer) {
    constexpr int k_upstreams = 256, k_captured = 1024;
    ggml_backend_dev_t device = buffer ? ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer)) : nullptr;
    if (!device || !ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_cuda_graph_stats")) {
        return k_upstreams;
    }
    const char * LLAMA_KV_STEP = getenv("LLAMA_KV_STEP");
    return LLAMA_KV_STEP ? std::max(k_upstreams, atoi(LLAMA_KV_STEP)) : k_captured;
}
