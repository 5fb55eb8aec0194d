#include "llama-kv-step.h"

#include <cstdlib>
#include <cstring>

uint32_t llama_kv_step(ggml_backend_buffer_t buffer) {
    constexpr uint32_t k_upstreams = 256, k_captured = 1024;
    ggml_backend_dev_t device = buffer ? ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer)) : nullptr;
    ggml_backend_reg_t reg    = device ? ggml_backend_dev_backend_reg(device) : nullptr; // none where several are one (-sm tensor)
    if (!reg || !ggml_backend_reg_get_proc_address(reg, "ggml_backend_cuda_graph_stats")) {
        return k_upstreams;
    }
    const char * LLAMA_KV_STEP = getenv("LLAMA_KV_STEP");
    return LLAMA_KV_STEP && strcmp(LLAMA_KV_STEP, "256") == 0 ? k_upstreams : k_captured;
}
