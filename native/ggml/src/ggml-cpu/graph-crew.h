// A graph computed by a crew: what its threads share, and what the last one to come to a meeting computes for all.
// Included by ggml-cpu.c, behind what a node is computed with.

#pragma once

static thread_ret_t ggml_graph_compute_thread(void * data);

// What one thread does sooner than several could agree to share it: some thousand values, a microsecond or two.
static bool ggml_cpu_is_small(const struct ggml_tensor * node) {
    const int64_t most = 8192;
    switch (node->op) {
        case GGML_OP_ADD:
        case GGML_OP_CLAMP:
        case GGML_OP_CONCAT:
        case GGML_OP_CONT:
        case GGML_OP_CPY:
        case GGML_OP_DIV:
        case GGML_OP_GLU:
        case GGML_OP_L2_NORM:
        case GGML_OP_MUL:
        case GGML_OP_NORM:
        case GGML_OP_REPEAT:
        case GGML_OP_RMS_NORM:
        case GGML_OP_ROPE:
        case GGML_OP_SCALE:
        case GGML_OP_SOFT_MAX:
        case GGML_OP_SSM_CONV:
        case GGML_OP_SUB:
        case GGML_OP_SUM_ROWS:
        case GGML_OP_UNARY:
            return MAX(ggml_nelements(node), ggml_nelements(node->src[0])) <= most;
        case GGML_OP_GET_ROWS:
            return ggml_nelements(node) <= most;
        case GGML_OP_SET_ROWS:
            return ggml_nelements(node->src[0]) <= most;
        case GGML_OP_MUL_MAT:
            return ggml_nelements(node->src[0]) * ggml_nelements(node->src[1]) / node->src[0]->ne[0] <= 4 * most;
        default:
            return false;
    }
}

static bool ggml_cpu_is_computed(const struct ggml_tensor * node) {
    return !ggml_op_is_empty(node->op) && (node->flags & GGML_TENSOR_FLAG_COMPUTE);
}

// Computes, by one thread, the nodes from `first` on that are too small to be shared, and begins with the next one if it
// can. False: there is none.
struct ggml_graph_errand {
    struct ggml_threadpool * tp;
    int first;
};

static bool ggml_graph_do_errand(void * ctx) {
    const struct ggml_graph_errand * errand = ctx;
    struct ggml_threadpool   * tp     = errand->tp;
    const struct ggml_cgraph * cgraph = tp->cgraph;
    if (atomic_load_explicit(&tp->abort, memory_order_relaxed) == errand->first) {
        return false;
    }
    struct ggml_compute_params params = {
        /*.ith        =*/ 0,
        /*.nth        =*/ 1,
        /*.wsize      =*/ tp->cplan->work_size,
        /*.wdata      =*/ tp->cplan->work_data,
        /*.threadpool =*/ tp,
        /*.use_ref    =*/ tp->cplan->use_ref,
        /*.prepared   =*/ false,
    };
    int node_n = errand->first, last = node_n - 1; // the one that was computed last
    for (; node_n < cgraph->n_nodes; node_n++) {
        struct ggml_tensor * node = cgraph->nodes[node_n];
        if (ggml_cpu_is_computed(node)) {
            if (!ggml_cpu_is_small(node)) {
                break;
            }
            const int n_fused = ggml_cpu_try_fuse_ops(cgraph, node_n, &params, tp->cplan);
            if (n_fused == 0) {
                ggml_compute_forward(&params, node);
            }
            last = node_n += n_fused;
        }
    }
    if (node_n == cgraph->n_nodes) {
        return false;
    }
    struct ggml_tensor * node = cgraph->nodes[node_n];
    tp->next_node = node_n;
    tp->prepared  = ggml_cpu_kquants_prepare(&params, node, last < 0 ? NULL : cgraph->nodes[last]) ||
        ggml_cpu_dense_prepare(&params, node) || ggml_cpu_attention_prepare(&params, node);
    return true;
}

// The next node from `first` on that threads share, once all who are in have come. -1: there is none, and the graph may
// be gone. The caller begins the graph, others where it is.
static int ggml_graph_next(struct ggml_compute_params * params, int first) {
    struct ggml_threadpool * tp = params->threadpool;
    struct ggml_graph_errand errand = { tp, first };
    const bool joins = first == 0 && params->ith > 0;
    if (!joins && !ggml_crew_meet(tp->crew, ggml_graph_do_errand, &errand)) {
        return -1;
    }
    params->nth      = ggml_crew_size(tp->crew);
    params->prepared = tp->prepared;
    return tp->next_node;
}

static void ggml_graph_compute_by(void * ctx, int ith) {
    struct ggml_threadpool * tp = ctx;
    ggml_thread_apply_priority(tp->prio);
    if (ggml_thread_cpumask_is_valid(tp->workers[ith].cpumask)) {
        ggml_thread_apply_affinity(tp->workers[ith].cpumask);
    }
    ggml_graph_compute_thread(&tp->workers[ith]);
}

// Graphs with the same products are of one kind.
static uint64_t ggml_graph_kind(void * ctx) {
    const struct ggml_cgraph * cgraph = ((struct ggml_threadpool *) ctx)->cgraph;
    uint64_t kind = 0;
    for (int i = 0; i < cgraph->n_nodes; i++) {
        const struct ggml_tensor * node = cgraph->nodes[i];
        if (node->op == GGML_OP_MUL_MAT) {
            kind = (kind * 31 + node->ne[0]) * 31 + node->ne[1];
        }
    }
    return kind;
}

static void ggml_graph_compute_by_crew(struct ggml_threadpool * tp, int n_threads) {
    tp->crew = ggml_crew_of_caller();
    ggml_crew_run(tp->crew, MIN(n_threads, tp->n_threads), ggml_graph_kind, ggml_graph_compute_by, tp);
}
