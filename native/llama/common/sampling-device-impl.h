// Included by sampling.cpp, behind the definition of common_sampler. See sampling-device.h.

#include "../src/llama-ext.h" // staging API: llama_get_out_token_ith

#include <cstdlib>

// nothing but temperature, top-k, top-p, min-p and top-n-sigma is at work, which keep the likeliest token
static bool common_sampler_keeps_order(const struct common_sampler * gsmpl) {
    if (!gsmpl || gsmpl->grmr || gsmpl->rbudget || gsmpl->biased) {
        return false;
    }

    const auto & params = gsmpl->params;

    const auto has = [&](enum common_sampler_type type) {
        return std::find(params.samplers.begin(), params.samplers.end(), type) != params.samplers.end();
    };

    const bool penalties =
        params.penalty_last_n != 0 && (params.penalty_repeat != 1.0f || params.penalty_freq != 0.0f || params.penalty_present != 0.0f);

    return
        params.mirostat == 0 && params.n_probs == 0 && params.dynatemp_range <= 0.0f && has(COMMON_SAMPLER_TYPE_TEMPERATURE) &&
        !(has(COMMON_SAMPLER_TYPE_PENALTIES) && penalties) &&
        !(has(COMMON_SAMPLER_TYPE_DRY)       && params.dry_multiplier  != 0.0f) &&
        !(has(COMMON_SAMPLER_TYPE_XTC)       && params.xtc_probability  > 0.0f) &&
        !(has(COMMON_SAMPLER_TYPE_TYPICAL_P) && params.typ_p            < 1.0f) &&
        !has(COMMON_SAMPLER_TYPE_INFILL) &&
        !has(COMMON_SAMPLER_TYPE_ADAPTIVE_P);
}

bool common_sampler_is_greedy(const struct common_sampler * gsmpl) {
    return common_sampler_keeps_order(gsmpl) && gsmpl->params.temp <= 0.0f;
}

bool common_sampler_is_simple(const struct common_sampler * gsmpl) {
    return common_sampler_keeps_order(gsmpl) && gsmpl->params.top_n_sigma <= 0.0f;
}

bool common_sampler_prefers_device() {
    const char * LLAMA_SPEC_GPU_SAMPLE = getenv("LLAMA_SPEC_GPU_SAMPLE");
    return LLAMA_SPEC_GPU_SAMPLE && atoi(LLAMA_SPEC_GPU_SAMPLE) != 0;
}

void common_sampler_set_chosen(struct common_sampler * gsmpl, bool value) {
    if (gsmpl) {
        gsmpl->chosen = value;
    }
}

bool common_sampler_get_chosen(const struct common_sampler * gsmpl) {
    return gsmpl && gsmpl->chosen;
}

// the token that the context chose
static llama_token common_sampler_take_chosen(struct common_sampler * gsmpl, struct llama_context * ctx, int idx) {
    const llama_token id = llama_get_out_token_ith(ctx, idx);
    GGML_ASSERT(id != LLAMA_TOKEN_NULL && "the context did not choose a token");

    gsmpl->cur.assign(1, { id, 0.0f, 1.0f });
    gsmpl->cur_p = { gsmpl->cur.data(), 1, 0, true };

    return id;
}
