// One loaded pair and what it holds: prompt, rounds, rewind.

#pragma once

#include "load.h"
#include "sampler.h"
#include "slipstream.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

struct llama_batch_ext;

struct slip_pair {
    explicit slip_pair(const slip_load_options & options);

    slip_info info() const;
    const llama_vocab * vocab() const;
    const char *        chat_template() const { return llama_model_chat_template(models_.target.get(), nullptr); }

    slip_prompt_result prompt(const slip_prompt_options & options);

    // `given` replaces the drafter's proposal if it is not NULL.
    slip_round_result round(int32_t n_draft, const int32_t * given);

    int32_t position() const { return static_cast<int32_t>(held_.size()); }
    void    reset();
    void    cancel(bool cancelled) { cancelled_ = cancelled; }

    void eval(const int32_t * tokens, int32_t n_tokens, int32_t n_rows, float * logits);
    void last_logits(int32_t row, float * logits);
    void eval_draft(const int32_t * tokens, int32_t n_tokens, llama_token anchor, float * features, float * hidden);

private:
    struct batch_free { void operator()(llama_batch_ext * batch) const; };
    using batch_ptr = std::unique_ptr<llama_batch_ext, batch_free>;

    // Passes. Each leaves its results in its context and counts rebuilt graphs.
    void target_pass(const llama_token * tokens, int32_t n, int32_t n_outputs);
    void inject(int32_t n_rows);
    void draft_pass(llama_token anchor, int32_t first_output, int32_t n_outputs);
    void process(llama_context * ctx, llama_batch_ext * batch);

    const float * target_logits(int32_t row);
    std::vector<llama_token> draft(int32_t n_draft);

    int32_t rewind_to(const int32_t * tokens, int32_t n_tokens, bool drafting);
    void    prefill(const int32_t * tokens, int32_t n_tokens, bool drafting);
    void    keep_checkpoint();
    void    throw_if_cancelled() const;
    void    set_drafting(bool drafting);
    void    forget_draft_from(int32_t position);

    std::atomic<bool> cancelled_ { false };
    slip_models       models_; // after the flag that its contexts read
    batch_ptr         batch_target_, batch_draft_;
    slip_sampler      sampler_;

    std::vector<llama_token> held_;            // tokens in the target's memory
    llama_token              anchor_ = LLAMA_TOKEN_NULL;
    int32_t                  n_injected_  = 0; // positions in the drafter's memory
    int32_t                  n_last_      = 0; // tokens of the target's last pass...
    int32_t                  n_outputs_   = 0; // ... of which the last so many have logits
    bool                     drafting_    = false;
    std::vector<float>       features_;        // [rows, taps * n_embd], of the last injection

    // Recurrent state after the first checkpoint_at_ held tokens.
    std::vector<uint8_t> checkpoint_;
    int32_t              checkpoint_at_ = 0;

    int32_t n_syncs_ = 0, n_graphs_rebuilt_ = 0; // since the round began
};
