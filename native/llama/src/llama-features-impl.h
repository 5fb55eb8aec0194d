// What a context keeps for llama-features.h.

#pragma once

#include "ggml-cpp.h"

#include <algorithm>
#include <cstdint>
#include <vector>

// Layer inputs of the last pass of few tokens.
struct llama_kept_features {
    struct layer {
        int32_t        il;
        ggml_backend_t backend;
        ggml_tensor *  rows; // F32 [n_embd, n_max], in the order of the batch
    };

    std::vector<layer>                   layers;
    std::vector<ggml_backend_buffer_ptr> buffers;
    ggml_context_ptr                     ctx;

    int32_t n_max  = 0;     // tokens of a pass that is kept
    int32_t n_rows = 0;     // of the last pass, 0: it was not kept
    bool    keeps  = false; // the pass that runs is

    const layer * find(int32_t il) const {
        const auto found = std::find_if(layers.begin(), layers.end(), [&](const layer & l) { return l.il == il; });
        return found == layers.end() ? nullptr : &*found;
    }
};

// Where the next pass has its features from.
struct llama_taken_features {
    const llama_kept_features * from  = nullptr;
    int32_t                     first = 0;
};
