#include "llama-features.h"

#include "llama-context.h"
#include "llama-graph.h"
#include "llama-impl.h"
#include "llama-model.h"

// Rows [first, first + n) of a tensor whose rows lie one behind the other.
static ggml_tensor rows_of(const ggml_tensor * t, int64_t first, int64_t n) {
    ggml_tensor rows = *t;
    rows.ne[1] = n;
    rows.ne[2] = rows.ne[3] = 1;
    rows.nb[2] = rows.nb[3] = n * t->nb[1];
    rows.view_src  = nullptr;
    rows.view_offs = 0;
    rows.data      = (char *) t->data + first * t->nb[1];
    return rows;
}

bool llama_context::keep_features(const int32_t * lids, int32_t n_layers, int32_t n_rows) {
    synchronize();
    features = {};
    if (model.split_mode() == LLAMA_SPLIT_MODE_TENSOR) {
        return false;
    }
    llama_kept_features kept;
    kept.n_max = n_rows;
    kept.ctx.reset(ggml_init({ n_layers * ggml_tensor_overhead(), nullptr, true }));
    for (int32_t i = 0; kept.ctx && i < n_layers; ++i) {
        ggml_backend_t backend = get_backend(model.dev_layer(lids[i]));
        backend = backend ? backend : backend_cpu;
        ggml_tensor * rows = ggml_new_tensor_2d(kept.ctx.get(), GGML_TYPE_F32, model.hparams.n_embd, n_rows);
        ggml_backend_buffer_t buffer = ggml_backend_alloc_buffer(backend, ggml_nbytes(rows));
        if (!buffer) {
            return false;
        }
        kept.buffers.emplace_back(buffer);
        if (ggml_backend_tensor_alloc(buffer, rows, ggml_backend_buffer_get_base(buffer)) != GGML_STATUS_SUCCESS) {
            return false;
        }
        kept.layers.push_back({ lids[i], backend, rows });
    }
    features = std::move(kept);
    return !features.layers.empty();
}

bool llama_context::take_features(llama_context & target, int32_t first) {
    // A graph of its own reads DSpark's stages, and others know nothing of features.
    if (model.arch != LLM_ARCH_DFLASH || model.hparams.dsv4_hc_mult > 0 || target.features.n_rows <= first ||
            target.features.layers.size() != model.target_layer_ids.size()) {
        return false;
    }
    target.synchronize(); // two contexts of one device know nothing of each other's order
    features_taken = { &target.features, first };
    return true;
}

void llama_context::keep_layer_inputs(const llm_graph_result * res, const llama_ubatch & ubatch) {
    GGML_ASSERT(ubatch.data && ubatch.data->batch_idxs.size() == ubatch.n_tokens);
    const auto & at = ubatch.data->batch_idxs;
    for (const auto & layer : features.layers) {
        const ggml_tensor * t = res->get_layer_inp(layer.il);
        GGML_ASSERT(t && t->type == GGML_TYPE_F32);
        // micro-batches of several sequences take some tokens of each
        for (uint32_t i = 0, n = 0; i < ubatch.n_tokens; i += n) {
            for (n = 1; i + n < ubatch.n_tokens && at[i + n] == at[i] + (int32_t) n; ++n) {}
            const ggml_tensor from = rows_of(t, i, n);
            ggml_tensor       into = rows_of(layer.rows, at[i], n);
            ggml_backend_tensor_copy_async(get_tensor_backend(const_cast<ggml_tensor *>(t)), layer.backend, &from, &into);
        }
    }
}

void llama_context::bring_features(uint32_t lid) {
    const auto * layer = features.n_rows > 0 ? features.find((int32_t) lid) : nullptr;
    if (layer) {
        ggml_backend_tensor_get(layer->rows, embd_layer_inp[lid].data, 0, features.n_rows * layer->rows->nb[1]);
    }
}

void llama_context::place_features(const llm_graph_result * res) {
    for (auto & backend : backends) {
        if (ggml_backend_supports_buft(backend.get(), ggml_backend_buffer_get_type(model.fc->buffer))) {
            ggml_backend_sched_set_tensor_backend(sched.get(), res->get_features(), backend.get());
            return;
        }
    }
}

void llama_context::fill_features(const llm_graph_result * res) {
    ggml_tensor * all = res->get_features();
    const int64_t n   = all->ne[1];
    GGML_ASSERT(features_taken.first + n <= features_taken.from->n_rows);

    ggml_backend_t backend = get_tensor_backend(all);
    for (size_t k = 0; k < features_taken.from->layers.size(); ++k) {
        const auto &      layer = features_taken.from->layers[k];
        const ggml_tensor from  = rows_of(layer.rows, features_taken.first, n);
        ggml_tensor       into  = rows_of(all, k * n, n);
        ggml_backend_tensor_copy_async(layer.backend, backend, &from, &into);
    }
    ggml_backend_synchronize(backend); // the target's next pass may write them again
    features_taken = {};
}

// Nothing of a batch: the context fills it from the target's.
class llm_graph_input_features : public llm_graph_input_i {
public:
    llm_graph_input_features(ggml_tensor * features) : features(features) {}

    void set_input(const llama_ubatch *) override {}

    bool can_reuse(const llm_graph_params & params) override { return features->ne[1] == params.ubatch.n_tokens; }

    ggml_tensor * features;
};

ggml_tensor * llm_graph_context::build_inp_features(int64_t n_layers) const {
    // F32 [n_embd, n_tokens, n_layers]: one copy a layer
    res->t_features = ggml_new_tensor_3d(ctx0, GGML_TYPE_F32, hparams.n_embd_inp_enc() / n_layers, n_tokens, n_layers);
    ggml_set_input(res->t_features);
    res->add_input(std::make_unique<llm_graph_input_features>(res->t_features));

    ggml_tensor * side_by_side = ggml_cont(ctx0, ggml_permute(ctx0, res->t_features, 0, 2, 1, 3));
    return ggml_reshape_2d(ctx0, side_by_side, hparams.n_embd_inp_enc(), n_tokens);
}

bool llama_keep_features(llama_context * ctx, const int32_t * layers, int32_t n_layers, int32_t n_rows) {
    const bool kept = ctx->keep_features(layers, n_layers, n_rows);
    if (!kept) {
        LLAMA_LOG_WARN("%s: features of the target go over the host\n", __func__);
    }
    return kept;
}

bool llama_take_features(llama_context * draft, llama_context * target, int32_t first) {
    return draft->take_features(*target, first);
}
