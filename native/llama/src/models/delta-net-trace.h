// The delta net as plain operations, for devices without ggml_gated_delta_net_trace. Tensors as there. Included by models.h.

#pragma once

#include "llama.h"
#include "ggml.h"

#include <functional>

using llm_delta_net_cb = std::function<void(ggml_tensor * cur, const char * name, int il)>;

struct llm_delta_net_result {
    ggml_tensor * output; // [S_v, H_v, n_tokens, n_seqs]
    ggml_tensor * state;  // [S_v, S_v, H_v, n_seqs]
    ggml_tensor * u;      // [S_v, H_v, n_tokens, n_seqs] what to keep of each token beside its key and gate
};

// one token
llm_delta_net_result llm_delta_net_step(ggml_context * ctx0, const llm_delta_net_cb & cb,
        ggml_tensor * q, ggml_tensor * k, ggml_tensor * v, ggml_tensor * g, ggml_tensor * b, ggml_tensor * s, int il);

// ggml_gated_delta_net_trace, any number of tokens
struct llm_delta_net_trace_cells {
    ggml_tensor * state;  // as there, updated in place by nodes added to the graph
    ggml_tensor * trace;
    ggml_tensor * replay;
    ggml_tensor * mask;   // F32 [n_trace, n_seqs] 1 for the tokens that replay commits, else 0
    ggml_tensor * rows;   // I64 [min(n_tokens, n_trace), n_seqs] where keys and gates go: (1 - half) * n_trace + i
};

LLAMA_API ggml_tensor * llm_delta_net_trace(ggml_context * ctx0, ggml_cgraph * gf, const llm_delta_net_cb & cb,
        const llm_delta_net_trace_cells & cells,
        ggml_tensor * q, ggml_tensor * k, ggml_tensor * v, ggml_tensor * g, ggml_tensor * b, int il);
