// Features of a round on the device: what the tapped layers of a target read stays there for its draft model. Part of
// llama-ext.h.

#pragma once

#include "llama.h"

#include <cstdint>

// Passes of at most n_rows tokens leave the inputs of these layers (llama_set_embeddings_layer_inp) on the device until
// the next pass; llama_get_embeddings_layer_inp brings them to the host where it is called. False, and nothing changes,
// where memory for them cannot be had or a layer is split among devices.
LLAMA_API bool llama_keep_features(struct llama_context * ctx, const int32_t * layers, int32_t n_layers, int32_t n_rows);

// The next pass of `draft` reads the features of the target's last batch from its token `first` on, side by side in the
// order of the layers above, in place of its own embeddings: rows of one number, of one sequence, one micro-batch. Once.
// Waits for the target. False where they are not on the device, or the draft model has a graph of another kind.
LLAMA_API bool llama_take_features(struct llama_context * draft, struct llama_context * target, int32_t first);
