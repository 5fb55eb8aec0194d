// States of sequences that stay on the device, beside llama-ext.h.

#pragma once

#include "ggml-backend.h"
#include "llama.h"

#include <cstddef>
#include <map>

// A sequence has 256 places for states on the device (LLAMA_STATE_SEQ_FLAGS_ON_DEVICE), which the flags name from bit 8
// on: `flags | place << 8`. A state that is kept takes the place of the one there.

// Gives back what a place holds; nothing can be read from there any more.
LLAMA_API void llama_state_seq_drop(struct llama_context * ctx, llama_seq_id seq_id, llama_state_seq_flags flags);

// Bytes that one state of each sequence takes at most, of what cannot be cut (LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY).
LLAMA_API std::map<ggml_backend_buffer_type_t, size_t> llama_get_state_breakdown(const struct llama_context * ctx);
