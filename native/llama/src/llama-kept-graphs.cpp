#include "llama-kept-graphs.h"

#include <algorithm>
#include <cstdlib>

llama_kept_graphs::llama_kept_graphs() {
    const char * LLAMA_KEPT_GRAPHS = getenv("LLAMA_KEPT_GRAPHS"); // how many, 0: none
    n_max = LLAMA_KEPT_GRAPHS ? std::clamp(atoi(LLAMA_KEPT_GRAPHS), 0, 64) : 12;
    graphs.reserve(n_max); // they stay where they are
}

llm_graph_result * llama_kept_graphs::take(ggml_backend_sched_t sched, const kind & of, uint32_t max_nodes, llm_graph_result *& active) {
    graph * next = of.n_tokens <= k_max_rows ? find(sched, of, max_nodes) : nullptr;
    if (next != current || !next) {
        if (current) {
            leave(sched, active);
            active = nullptr;
        }
        if (next) {
            ggml_backend_sched_swap_plan(sched, next->plan.get());
            const bool lies = next->ready && next->n_allocs >= 0 && next->n_allocs == ggml_backend_sched_n_allocs(sched);
            active = lies ? next->result.get() : nullptr;
        }
        current = next;
    }
    if (!next) {
        return nullptr;
    }
    next->n_uses = ++n_uses;
    return next->result.get();
}

void llama_kept_graphs::clear(ggml_backend_sched_t sched) {
    if (current) {
        leave(sched, nullptr);
    }
    graphs.clear();
}

// The scheduler's own again.
void llama_kept_graphs::leave(ggml_backend_sched_t sched, const llm_graph_result * active) {
    ggml_backend_sched_swap_plan(sched, current->plan.get());
    current->ready    = active == current->result.get();
    current->n_allocs = ggml_backend_sched_n_allocs(sched);
    current           = nullptr;
}

llama_kept_graphs::graph * llama_kept_graphs::find(ggml_backend_sched_t sched, const kind & of, uint32_t max_nodes) {
    const auto found = std::find_if(graphs.begin(), graphs.end(), [&](const graph & g) { return g.of == of; });
    if (found != graphs.end()) {
        return &*found;
    }
    if (graphs.size() < n_max) {
        ggml_backend_sched_ptr plan(ggml_backend_sched_new_plan(sched, max_nodes));
        if (!plan) {
            return nullptr;
        }
        graphs.push_back({ of, std::make_unique<llm_graph_result>(max_nodes), std::move(plan) });
        return &graphs.back();
    }
    if (graphs.empty()) {
        return nullptr;
    }
    // the place of the one that was not used for longest
    graph & oldest = *std::min_element(graphs.begin(), graphs.end(), [](const graph & a, const graph & b) { return a.n_uses < b.n_uses; });
    oldest.of    = of;
    oldest.ready = false;
    return &oldest;
}
