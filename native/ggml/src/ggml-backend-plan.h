// What a scheduler knows of the graph that it has allocated, kept aside: see ggml_backend_sched_new_plan. Part of
// ggml-backend.cpp.

#pragma once

#include <new>

// A plan is a scheduler without memory of its own: hash tables, splits and copies of one graph.
ggml_backend_sched_t ggml_backend_sched_new_plan(ggml_backend_sched_t sched, size_t graph_size) {
    if (sched->n_copies > 1 || ggml_backend_sched_n_allocs(sched) < 0) {
        return NULL;
    }
    ggml_backend_sched_t plan = (ggml_backend_sched *) calloc(1, sizeof(struct ggml_backend_sched));
    if (plan == NULL) {
        return NULL;
    }

    plan->n_backends            = sched->n_backends;
    plan->n_copies              = sched->n_copies;
    plan->hash_set              = ggml_hash_set_new(graph_size);
    plan->hv_tensor_backend_ids = (int *) malloc(plan->hash_set.size * sizeof(plan->hv_tensor_backend_ids[0]));
    plan->hv_tensor_copies      = (ggml_tensor **) malloc(plan->hash_set.size * plan->n_backends * sizeof(struct ggml_tensor *));
    plan->splits_capacity       = 16;
    plan->splits                = (ggml_backend_sched_split *) calloc(plan->splits_capacity, sizeof(plan->splits[0]));
    plan->graph_inputs_capacity = GGML_SCHED_MAX_SPLIT_INPUTS;
    plan->graph_inputs          = (struct ggml_tensor **) calloc(plan->graph_inputs_capacity, sizeof(struct ggml_tensor *));
    plan->splits_capacity       = plan->splits ? plan->splits_capacity : 0;
    if (!plan->hv_tensor_backend_ids || !plan->hv_tensor_copies || !plan->splits || !plan->graph_inputs) {
        ggml_backend_sched_free(plan);
        return NULL;
    }
    ggml_backend_sched_reset(plan);

    return plan;
}

void ggml_backend_sched_swap_plan(ggml_backend_sched_t sched, ggml_backend_sched_t plan) {
    std::swap(sched->is_reset,              plan->is_reset);
    std::swap(sched->is_alloc,              plan->is_alloc);
    std::swap(sched->hash_set,              plan->hash_set);
    std::swap(sched->hv_tensor_backend_ids, plan->hv_tensor_backend_ids);
    std::swap(sched->hv_tensor_copies,      plan->hv_tensor_copies);
    std::swap(sched->graph,                 plan->graph);
    std::swap(sched->splits,                plan->splits);
    std::swap(sched->n_splits,              plan->n_splits);
    std::swap(sched->splits_capacity,       plan->splits_capacity);
    std::swap(sched->graph_inputs,          plan->graph_inputs);
    std::swap(sched->n_graph_inputs,        plan->n_graph_inputs);
    std::swap(sched->graph_inputs_capacity, plan->graph_inputs_capacity);
    std::swap(sched->ctx,                   plan->ctx);
    std::swap(sched->context_buffer,        plan->context_buffer);
    std::swap(sched->context_buffer_size,   plan->context_buffer_size);
}

// Room for the tensors that a scheduler adds to a graph: at most a copy of each source for each other backend, with a view
// that holds it, and views that hold what fused operations read. A scheduler's own is made for many more splits. Throws
// std::bad_alloc.
static void ggml_backend_sched_reserve_context(ggml_backend_sched_t sched, const struct ggml_cgraph * graph) {
    const size_t n_copies = (size_t) sched->n_backends * sched->n_copies * (graph->n_nodes + graph->n_leafs);
    const size_t size     = (2*n_copies + 4*(size_t) graph->n_nodes + 1) * ggml_tensor_overhead();
    if (sched->context_buffer_size >= size) {
        return;
    }
    free(sched->context_buffer);
    sched->context_buffer      = (char *) malloc(size);
    sched->context_buffer_size = sched->context_buffer ? size : 0;
    if (sched->context_buffer == NULL) {
        ggml_alloc_failed();
        throw std::bad_alloc();
    }
}
