// Tokens instead of logits: part of llama-ext.h, which says what that is.

#pragma once

#include "llama.h"

#include <cstdint>

// With a chooser set, the graph of a pass ends in one token for each output row, chosen on the device:
// the tokens go to the host, and the logits stay where they are.
struct llama_out_chooser {
    // Adds to the graph what chooses: logits F32 [n_vocab, n_rows] -> I32 [n_rows].
    // May make one input (ggml_set_input) and give it back in *input.
    ggml_tensor * (*build)(const void * user, ggml_context * ctx, ggml_tensor * logits, ggml_tensor ** input) = nullptr;
    // Fills that input before each pass; pos: [n_rows] positions of the tokens whose successors are chosen.
    void (*set_input)(const void * user, ggml_tensor * input, const llama_pos * pos, int32_t n_rows) = nullptr;
    const void * user = nullptr;
    uint64_t     key  = 0; // a graph built with another key is not used again
};

// nullptr: logits again
LLAMA_API void llama_set_out_chooser(struct llama_context * ctx, const llama_out_chooser * chooser);

// The likeliest token of each row, of equals the first.
LLAMA_API void llama_set_out_argmax(struct llama_context * ctx, bool value);

// The token chosen behind token i of the last batch (i as in llama_get_logits_ith).
// LLAMA_TOKEN_NULL without a chooser or for a token without output.
LLAMA_API llama_token llama_get_out_token_ith(struct llama_context * ctx, int32_t i);
