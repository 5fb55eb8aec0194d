// By how many cells the part of a cache grows that passes read. Each step is a new graph for every width of a pass.

#pragma once

#include "llama.h"

#include <cstdint>

// `buffer` of the cache, or nullptr. 1,024 where a device captures graphs, else upstream's 256; LLAMA_KV_STEP=256 has
// upstream's there too.
LLAMA_API uint32_t llama_kv_step(ggml_backend_buffer_t buffer);
