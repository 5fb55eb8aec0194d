#include "server-checkpoint.h"

#include "../../src/llama-state-places.h"

#include "llama-cpp.h"
#include "log.h"
#include "speculative.h"

#include <algorithm>
#include <array>

static llama_state_seq_flags flags_of(int32_t place) {
    return LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY | (place < 0 ? 0 : LLAMA_STATE_SEQ_FLAGS_ON_DEVICE | place << 8);
}

void server_checkpoint::update(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id, int32_t place_new) {
    const auto flags = flags_of(place_new);

    // a draft model whose layers all see everything is cut where it is gone on from
    const llama_model * model_dft = ctx_dft ? llama_get_model(ctx_dft) : nullptr;
    if (model_dft && llama_model_n_swa(model_dft) == 0 && !llama_model_is_hybrid(model_dft) && !llama_model_is_recurrent(model_dft)) {
        ctx_dft = nullptr;
    }
    data_dft.clear();

    const auto get = [&](llama_context * ctx, std::vector<uint8_t> & data) {
        if (ctx == nullptr) {
            return true;
        }
        data.resize(llama_state_seq_get_size_ext(ctx, seq_id, flags));
        return llama_state_seq_get_data_ext(ctx, data.data(), data.size(), seq_id, flags) == data.size();
    };

    place = place_new;
    if (place >= 0 && !(get(ctx_tgt, data_tgt) && get(ctx_dft, data_dft))) {
        place = -1; // there is no room
    }
    if (place < 0) {
        update_tgt(ctx_tgt, seq_id, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
        update_dft(ctx_dft, seq_id, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
    }
}

void server_checkpoint::load(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id) const {
    load_tgt(ctx_tgt, seq_id, flags_of(place));
    load_dft(ctx_dft, seq_id, flags_of(place));
}

void server_checkpoints::reserve(common_params & params) {
    bool any_device = false; // with memory of its own
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        any_device = any_device || !ggml_backend_buft_is_host(ggml_backend_dev_buffer_type(ggml_backend_dev_get(i)));
    }
    if (!any_device) {
        return;
    }

    // models without weights and contexts without memory: what llama.cpp is given points into the parameters
    common_params params_dft = common_base_params_to_speculative(params);
    const bool has_dft = params.speculative.has_dft();
    std::array<llama_model_ptr, 2>   models;
    std::array<llama_context_ptr, 2> contexts;

    for (size_t k = 0; k < (has_dft ? 2 : 1); ++k) {
        common_params & of = k == 0 ? params : params_dft;
        auto mparams = common_model_params_to_llama(of);
        auto cparams = common_context_params_to_llama(of);
        mparams.no_alloc  = true;
        mparams.load_mode = LLAMA_LOAD_MODE_NONE;
        if (k == 1) {
            cparams.n_rs_seq  = 0;
            cparams.ctx_other = contexts[0].get();
        }

        models[k].reset(llama_model_load_from_file(of.model.path.c_str(), mparams));
        contexts[k].reset(models[k] ? llama_init_from_model(models[k].get(), cparams) : nullptr);
        if (!contexts[k]) {
            return; // who loads it says why
        }

        for (const auto & [buft, size] : llama_get_state_breakdown(contexts[k].get())) {
            for (size_t i = 0; !ggml_backend_buft_is_host(buft) && i < std::min(ggml_backend_dev_count(), params.fit_params_target.size()); ++i) {
                if (ggml_backend_dev_get(i) == ggml_backend_buft_get_device(buft)) {
                    LOG_INF("%s: room for %.3f MiB of states in '%s'\n", __func__, n_places*size / 1024.0 / 1024.0, ggml_backend_buft_name(buft));
                    params.fit_params_target[i] += n_places*size;
                }
            }
        }
    }
}

void server_checkpoints::to_host(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id) {
    server_checkpoint now;

    for (auto & cur : *this) {
        if (cur.place < 0) {
            continue;
        }
        if (now.empty()) {
            now.update(ctx_tgt, ctx_dft, seq_id, -1);
        }
        cur.load(ctx_tgt, ctx_dft, seq_id);
        cur.update(ctx_tgt, ctx_dft, seq_id, -1);
    }

    if (!now.empty()) {
        now.load(ctx_tgt, ctx_dft, seq_id);
    }
}

void server_checkpoints::trim(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id) const {
    for (int32_t place = 0; place < n_places; ++place) {
        if (std::any_of(begin(), end(), [&](const server_checkpoint & cur) { return cur.place == place; })) {
            continue;
        }
        llama_state_seq_drop(ctx_tgt, seq_id, flags_of(place));
        if (ctx_dft) {
            llama_state_seq_drop(ctx_dft, seq_id, flags_of(place));
        }
    }
}

void server_checkpoints::drop_on_device() {
    remove_if([](const server_checkpoint & cur) { return cur.place >= 0; });
}

void server_checkpoints::drop_at(int32_t place) {
    remove_if([&](const server_checkpoint & cur) { return cur.place == place; });
}

server_checkpoint_plan::server_checkpoint_plan(const llama_context * ctx, const common_chat_msg_spans & spans, int64_t n_tokens,
        int64_t n_shared, int64_t n_held) {
    constexpr int64_t opening_usual = 4; // tokens that open an answer, about. ref: https://github.com/ggml-org/llama.cpp/pull/20288
    constexpr int64_t opening_most  = 32;
    constexpr int64_t shared_least  = 32; // fewer are read in no time

    const llama_model * model = llama_get_model(ctx);
    recurrent = llama_model_is_hybrid(model) || llama_model_is_recurrent(model);
    n_batch   = llama_n_batch(ctx);

    opening = n_tokens - opening_usual;
    branch  = spans.last_user_message_pos();
    if (!recurrent) {
        return;
    }

    // what is said to open an answer, an empty thought for one, is not in the next prompt
    if (!spans.spans.empty() && spans.spans.back().role == COMMON_CHAT_ROLE_ASSISTANT) {
        const int64_t pos = spans.spans.back().pos;
        if (pos > 0 && n_tokens - pos < std::min<int64_t>(opening_most, llama_n_ubatch(ctx))) {
            opening = pos;
        }
    }
    if (branch < 0 && n_shared >= shared_least && n_shared < std::min(n_held, n_tokens)) {
        branch = n_shared;
    }
}

int32_t server_checkpoint_plan::place(const server_checkpoints & checkpoints, int64_t n_tokens) const {
    if (!recurrent) {
        return on_host;
    }

    int64_t last = 0;
    for (const auto & cur : checkpoints) {
        if (cur.n_tokens == n_tokens) {
            return nowhere; // there is one
        }
        if (cur.place < 0) {
            last = std::max(last, cur.n_tokens);
        }
    }
    if (n_tokens >= last + n_batch) {
        return on_host;
    }

    return n_tokens == branch ? 1 : n_tokens == opening ? 0 : nowhere;
}
