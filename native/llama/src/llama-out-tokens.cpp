#include "llama-out-tokens.h"

#include "llama-context.h"
#include "llama-graph.h"
#include "llama-impl.h"

#include <memory>
#include <stdexcept>
#include <vector>

// what a chooser of output tokens reads besides the logits
class llm_graph_input_out_tokens : public llm_graph_input_i {
public:
    llm_graph_input_out_tokens(const llama_out_chooser & chooser, ggml_tensor * input) : chooser(chooser), input(input) {}
    virtual ~llm_graph_input_out_tokens() = default;

    void set_input(const llama_ubatch * ubatch) override {
        std::vector<llama_pos> pos;
        for (uint32_t i = 0; i < ubatch->n_tokens; ++i) {
            if (ubatch->output[i]) {
                pos.push_back(ubatch->pos[i]);
            }
        }
        chooser.set_input(chooser.user, input, pos.data(), (int32_t) pos.size());
    }

    bool can_reuse(const llm_graph_params &) override { return true; } // the key is among the graph's parameters

    const llama_out_chooser chooser;
    ggml_tensor * input;
};

void llm_graph_context::build_out_tokens() const {
    const auto & chooser = cparams.out_chooser;
    if (!chooser.build || !res->t_logits) {
        return;
    }

    ggml_tensor * input = nullptr;
    res->t_out_tokens = chooser.build(chooser.user, ctx0, res->t_logits, &input);
    GGML_ASSERT(res->t_out_tokens->type == GGML_TYPE_I32 && ggml_nelements(res->t_out_tokens) == res->t_logits->ne[1]);
    cb(res->t_out_tokens, "result_tokens", -1);

    if (input) {
        res->add_input(std::make_unique<llm_graph_input_out_tokens>(chooser, input));
    }
    ggml_build_forward_expand(gf, res->t_out_tokens);
}

void llama_context::set_out_chooser(const llama_out_chooser & chooser) {
    cparams.out_chooser = chooser;
}

llama_token llama_context::get_out_token_ith(int32_t idx) {
    output_reorder();

    try {
        if (!out_tokens.has_data()) {
            throw std::runtime_error("no tokens were chosen");
        }
        return out_tokens.data[output_resolve_row(idx)];
    } catch (const std::exception & err) {
        LLAMA_LOG_ERROR("%s: invalid output id %d, reason: %s\n", __func__, idx, err.what());
        return LLAMA_TOKEN_NULL;
    }
}

void llama_set_out_chooser(llama_context * ctx, const llama_out_chooser * chooser) {
    ctx->set_out_chooser(chooser ? *chooser : llama_out_chooser());
}

void llama_set_out_argmax(llama_context * ctx, bool value) {
    llama_out_chooser chooser;
    if (value) {
        chooser.build = [](const void *, ggml_context * ctx0, ggml_tensor * logits, ggml_tensor **) { return ggml_argmax(ctx0, logits); };
    }
    ctx->set_out_chooser(chooser);
}

llama_token llama_get_out_token_ith(llama_context * ctx, int32_t i) {
    ctx->synchronize();

    return ctx->get_out_token_ith(i);
}
