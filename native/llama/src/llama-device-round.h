// Passes that follow each other on a device without the host between them: part of llama-ext.h.

#pragma once

#include "llama.h"

#include <cstdint>

// Queue a pass's inputs instead of waiting for what runs on the device; the next pass waits for this one before it
// writes its own. The token input then lives where the embedding does.
LLAMA_API void llama_set_async_inputs(struct llama_context * ctx, bool value);

// The next pass takes its tokens from the second on from this I32 tensor, which `backend` computes, instead of from
// the batch; the batch holds any valid tokens there. Once.
LLAMA_API void llama_set_inp_tokens(struct llama_context * ctx, ggml_backend_t backend, const ggml_tensor * tokens);

// Layer inputs (llama_set_embeddings_layer_inp) stay on the device.
LLAMA_API void llama_set_layer_inp_on_device(struct llama_context * ctx, bool value);

// Of the last pass, until the next: F32 [n_embd, n_tokens of its last micro-batch] and F32 [n_vocab, n_outputs].
LLAMA_API ggml_tensor * llama_get_layer_inp_tensor(struct llama_context * ctx, uint32_t lid);
LLAMA_API ggml_tensor * llama_get_logits_tensor(struct llama_context * ctx);

// The context's backend for a device; nullptr if it uses none.
LLAMA_API ggml_backend_t llama_get_backend(struct llama_context * ctx, ggml_backend_dev_t device);

// The backend that computes a tensor of the last pass.
LLAMA_API ggml_backend_t llama_get_tensor_backend(struct llama_context * ctx, ggml_tensor * tensor);

// A weight by its name in the file; nullptr if there is none. If the embedding doubles as the head, "output.weight"
// is the copy beside the last layer.
LLAMA_API ggml_tensor * llama_model_get_weight(const struct llama_model * model, const char * name);
