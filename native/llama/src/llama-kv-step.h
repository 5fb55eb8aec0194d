// By how many cells the part of a cache grows that passes read. Each step is a new graph for every width of a pass.

#pragma once

#include "ggml-backend.h"

#include <cstdint>

// `buffer` of the cache, or nullptr. 1,024 where a device captures graphs, else upstream's 256; the environment variable
// LLAMA_KV_STEP says otherwise there.
uint32_t llama_kv_step(ggml_backend_buffer_t buffer);
