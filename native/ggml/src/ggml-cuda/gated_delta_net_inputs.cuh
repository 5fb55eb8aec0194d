#include "common.cuh"

// What comes before a gated delta net of few tokens: the inputs of the convolution and their copy into
// the cells, the convolution, SiLU, the norms of queries and keys, and the two gates.
struct ggml_cuda_gdn_inputs {
    const ggml_tensor * window;  // GET_ROWS: the inputs before these tokens
    const ggml_tensor * qkv;     // F32 [channels, tokens, sequences]
    const ggml_tensor * cells;   // where the last inputs go, one row a sequence
    const ggml_tensor * kernel;  // F32 [4, channels]
    const ggml_tensor * conv;    // SiLU of the convolution; only the values are written
    const ggml_tensor * q_norm;  // RMS_NORM
    const ggml_tensor * k_norm;
    const ggml_tensor * q;       // SCALE of it
    const ggml_tensor * k;
    const ggml_tensor * alpha;   // F32 [value heads, tokens, sequences]
    const ggml_tensor * dt;
    const ggml_tensor * a;
    const ggml_tensor * g;       // softplus(alpha + dt)*a
    const ggml_tensor * beta_in;
    const ggml_tensor * beta;    // sigmoid
    int                 n_nodes; // of the graph, from the first to the last
};

// Whether these operations begin at a node of the graph.
bool ggml_cuda_match_gdn_inputs(const ggml_cgraph * cgraph, int i, ggml_cuda_gdn_inputs & match);

// Whether no result lies where another block still reads.
bool ggml_cuda_gdn_inputs_are_apart(const ggml_cuda_gdn_inputs & match);

void ggml_cuda_op_gdn_inputs(ggml_backend_cuda_context & ctx, const ggml_cuda_gdn_inputs & match);
