// Loading: files checked, pair checked, models and contexts made.

#pragma once

#include "slipstream.h"

#include "ggml-backend.h"
#include "llama-cpp.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

// A target and, unless block is 0, its drafter; both with a context of their own.
struct slip_models {
    llama_model_ptr   target, draft;
    llama_context_ptr ctx_target, ctx_draft; // after the models: freed first

    ggml_backend_dev_t   device  = nullptr;
    int32_t              n_ctx   = 0; // tokens that fit; the drafter's context has a block more
    int32_t              block   = 0; // trained block size of the drafter in tokens
    llama_token          mask    = LLAMA_TOKEN_NULL;
    std::vector<int32_t> taps;        // layer inputs of the target that the drafter reads
};

// Throws slip_failure. `cancelled` stops a running pass on the CPU; it must outlive the contexts.
slip_models slip_load_models(const slip_load_options & options, std::atomic<bool> & cancelled);
