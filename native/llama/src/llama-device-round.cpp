#include "llama-device-round.h"

#include "llama-context.h"
#include "llama-graph.h"
#include "llama-model.h"

#include <cstring>

void llama_context::set_async_inputs(bool value) {
    synchronize();
    cparams.async_inputs = value;
    kept_graphs.clear(sched.get()); // their token input may be elsewhere
    gf_res_prev_active   = nullptr;
}

void llama_context::set_inp_tokens(ggml_backend_t backend, const ggml_tensor * tokens) {
    inp_tokens_backend = backend;
    inp_tokens         = tokens;
}

void llama_context::set_layer_inp_on_device(bool value) {
    cparams.layer_inp_on_device = value;
}

ggml_tensor * llama_context::get_layer_inp_tensor(uint32_t lid) const {
    return gf_res_prev_active ? gf_res_prev_active->get_layer_inp((int) lid) : nullptr;
}

ggml_tensor * llama_context::get_logits_tensor() const {
    return gf_res_prev_active ? gf_res_prev_active->get_logits() : nullptr;
}

ggml_backend_t llama_context::get_backend(ggml_backend_dev_t device) const {
    for (const auto & backend : backends) {
        if (ggml_backend_get_device(backend.get()) == device) {
            return backend.get();
        }
    }
    return nullptr;
}

ggml_backend_t llama_context::get_tensor_backend(ggml_tensor * tensor) const {
    return ggml_backend_sched_get_tensor_backend(sched.get(), tensor);
}

void llama_context::place_inp_tokens(const llm_graph_result * res, ggml_cgraph * gf) {
    for (int i = 0; i < ggml_graph_n_nodes(gf); ++i) {
        ggml_tensor * node = ggml_graph_node(gf, i);
        if (node->op != GGML_OP_GET_ROWS || node->src[1] != res->get_inp_tokens() || !node->src[0]->buffer) {
            continue;
        }
        for (auto & backend : backends) {
            if (ggml_backend_supports_buft(backend.get(), ggml_backend_buffer_get_type(node->src[0]->buffer)) &&
                    ggml_backend_supports_op(backend.get(), node)) {
                ggml_backend_sched_set_tensor_backend(sched.get(), res->get_inp_tokens(), backend.get());
                return;
            }
        }
    }
}

void llama_context::take_inp_tokens(const llm_graph_result * res) {
    ggml_tensor * all = res->get_inp_tokens();
    GGML_ASSERT(all && inp_tokens->type == GGML_TYPE_I32 && ggml_nelements(inp_tokens) + 1 == all->ne[0]);

    ggml_tensor behind_first = *inp_tokens; // shape of the source, memory of the input
    behind_first.view_src  = nullptr;
    behind_first.view_offs = 0;
    behind_first.data      = (char *) all->data + all->nb[0];
    behind_first.buffer    = all->buffer;

    ggml_backend_t backend = ggml_backend_sched_get_tensor_backend(sched.get(), all);
    ggml_backend_tensor_copy_async(inp_tokens_backend, backend, inp_tokens, &behind_first);
    inp_tokens = nullptr; // the first micro-batch has them
}

void llama_set_async_inputs(llama_context * ctx, bool value) {
    ctx->set_async_inputs(value);
}

void llama_set_inp_tokens(llama_context * ctx, ggml_backend_t backend, const ggml_tensor * tokens) {
    ctx->set_inp_tokens(backend, tokens);
}

void llama_set_layer_inp_on_device(llama_context * ctx, bool value) {
    ctx->set_layer_inp_on_device(value);
}

ggml_tensor * llama_get_layer_inp_tensor(llama_context * ctx, uint32_t lid) {
    return ctx->get_layer_inp_tensor(lid);
}

ggml_tensor * llama_get_logits_tensor(llama_context * ctx) {
    return ctx->get_logits_tensor();
}

ggml_backend_t llama_get_backend(llama_context * ctx, ggml_backend_dev_t device) {
    return ctx->get_backend(device);
}

ggml_backend_t llama_get_tensor_backend(llama_context * ctx, ggml_tensor * tensor) {
    return ctx->get_tensor_backend(tensor);
}

ggml_tensor * llama_model_get_weight(const llama_model * model, const char * name) {
    if (strcmp(name, "output.weight") == 0) {
        return model->output;
    }
    if (strcmp(name, "token_embd.weight") == 0) {
        return model->tok_embd;
    }
    return const_cast<ggml_tensor *>(model->get_tensor(name));
}
