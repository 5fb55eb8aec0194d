// Graphs of passes over few rows, kept with what the scheduler knows of them: a pass of another width than the last one
// had to be built and laid out anew, though it had been there before.
//
// Compute buffers are shared: a graph lies where it lay as long as the scheduler does not get larger ones. A kept graph
// takes memory of the host for its tensors and tables: 1.4 MB with 32 layers.

#pragma once

#include "llama-graph.h"

#include "ggml-cpp.h"

#include <cstdint>
#include <vector>

class llama_kept_graphs {
public:
    static constexpr uint32_t k_max_rows = 32; // of a pass: more are a prompt, whose graphs come once

    struct kind {
        uint32_t n_tokens, n_seqs;
        llm_graph_type type;
        bool has_outputs;

        bool operator==(const kind & other) const {
            return n_tokens == other.n_tokens && n_seqs == other.n_seqs && type == other.type && has_outputs == other.has_outputs;
        }
    };

    llama_kept_graphs();

    // The result for a pass of this kind, nullptr where it is not kept. The scheduler then holds what it held of that graph
    // last; `active` is the result if it holds it still, else nullptr, and before the result of the scheduler's last graph.
    // max_nodes: that such a graph may have
    llm_graph_result * take(ggml_backend_sched_t sched, const kind & of, uint32_t max_nodes, llm_graph_result *& active);

    // Forgets all. Before the scheduler is used for other graphs, given back, or an answer of can_reuse() is void.
    void clear(ggml_backend_sched_t sched);

private:
    struct graph {
        kind                   of;
        llm_graph_result_ptr   result;
        ggml_backend_sched_ptr plan;         // what the scheduler does not hold of the two
        bool                   ready    = false;
        int64_t                n_allocs = 0; // of the scheduler, when it was ready
        uint64_t               n_uses   = 0; // of all, when it was used last
    };

    void leave(ggml_backend_sched_t sched, const llm_graph_result * active);
    graph * find(ggml_backend_sched_t sched, const kind & of, uint32_t max_nodes);

    size_t             n_max;
    std::vector<graph> graphs;
    graph *            current = nullptr; // that the scheduler holds; nullptr: none of these
    uint64_t           n_uses  = 0;
};
