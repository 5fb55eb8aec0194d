// Loading: files checked, pair checked, models and contexts made.

#pragma once

#include "drafter.h"
#include "slipstream.h"

#include "ggml-backend.h"
#include "llama-cpp.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

// A target and, unless there is none, its drafter.
struct slip_models {
    llama_model_ptr   target, draft;
    llama_context_ptr ctx_target; // after the models: freed first
    std::unique_ptr<slip_drafter> drafter; // computes on the context's backends: freed before it

    ggml_backend_dev_t device       = nullptr;
    ggml_backend_dev_t draft_device = nullptr;
    int32_t            n_ctx  = 0; // tokens that fit
    int32_t            n_layers = 0, n_layers_device = 0; // of the target; the last ones are on its GPU, where all do not fit
    slip_drafter_shape shape;      // of the drafter; its block is 0 without one
    std::string        repairs;    // what the files lack or the load leaves out, in sentences
    uint64_t           mapped = 0; // bytes of the target's weights in the file's own pages

    bool on_gpu() const;
    bool whole() const { return n_layers_device == n_layers; } // not partly on the CPU
    bool drafts_on_gpu() const;
    bool exact() const; // weights all in F32

    // What its contexts take, or would if they were made for measuring; and what is free now.
    slip_footprint footprint() const;
};

// Reads no weights. Throws slip_failure, SLIP_ERROR_MEMORY where the load would not fit.
slip_estimate slip_estimate_models(const slip_load_options & options);

// Throws slip_failure. `cancelled` stops a running pass on the CPU; it must outlive the contexts.
slip_models slip_load_models(const slip_load_options & options, std::atomic<bool> & cancelled);
