// One loaded pair and what it holds: prompt, rounds, rewind.

#pragma once

#include "governor.h"
#include "load.h"
#include "sampler.h"
#include "slipstream.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

struct llama_batch_ext;

// Tokens that may come next.
struct slip_hint {
    const int32_t * tokens = nullptr;
    int32_t         n      = 0;
};

struct slip_pair {
    explicit slip_pair(const slip_load_options & options);

    slip_info info() const;
    const llama_vocab * vocab() const;
    const char *        chat_template() const { return llama_model_chat_template(models_.target.get(), nullptr); }

    slip_prompt_result prompt(const slip_prompt_options & options);

    // A draft of the drafter, or of `hint` from where that goes on as it begins.
    slip_round_result round(int32_t n_draft, const slip_hint & hint);

    // At most `n_draft` tokens, as many as the governor thinks pay.
    slip_round_result governed_round(int32_t n_draft, const slip_hint & hint);

    // `given` in place of the drafter's proposal.
    slip_round_result given_round(int32_t n_draft, const int32_t * given);

    // Takes no longer than `limit_ms`, as far as one round of each kind allows.
    slip_costs measure_costs(double limit_ms = 1700);
    void       set_costs(const slip_costs & costs);

    slip_learned learned() const { return governor_.learned(); }
    void         set_learned(const slip_learned & learned);

    slip_exactness probe_exact();

    int32_t position() const { return static_cast<int32_t>(held_.size()); }
    void    reset();
    void    cancel(bool cancelled) { cancelled_ = cancelled; }

    void eval(const int32_t * tokens, int32_t n_tokens, int32_t n_rows, float * logits);
    void last_logits(int32_t row, float * logits);
    void eval_draft(const int32_t * tokens, int32_t n_tokens, llama_token anchor, float * features, float * hidden);

private:
    struct batch_free { void operator()(llama_batch_ext * batch) const; };
    using batch_ptr = std::unique_ptr<llama_batch_ext, batch_free>;

    // Passes. Each leaves its results in the context and counts what it cost.
    void target_pass(const llama_token * tokens, int32_t n, int32_t n_outputs);
    llama_token target_choice(int32_t row, int32_t position);
    const float * host_logits(int32_t row) const;

    slip_round_result verified(int32_t n_draft, const int32_t * given, const slip_hint & hint);
    int32_t agreed(const slip_hint & hint, int32_t n_draft);
    int32_t widest(int32_t n_draft) const;
    int32_t rewind_to(const int32_t * tokens, int32_t n_tokens, bool drafting);
    void    prefill(const int32_t * tokens, int32_t n_tokens, bool drafting);
    void    keep_checkpoint();
    bool    restore_checkpoint(); // false: what is held then is unknown
    void    throw_if_cancelled() const;
    void    check_fits(int32_t n_tokens) const; // of what is looked at from inside
    void    check_known(const int32_t * tokens, int32_t n_tokens) const; // of the vocabulary
    void    set_drafting(bool drafting);
    void    wait();
    void    warm_up();
    slip_costs timed_rounds(double limit_ms);
    void    read_logits(int32_t first_row, int32_t n_rows, float * out);

    std::atomic<bool> cancelled_ { false };
    slip_models       models_; // after the flag that its contexts read
    batch_ptr         batch_;
    slip_sampler      sampler_;
    slip_governor     governor_;

    std::vector<llama_token> held_;            // tokens in the target's memory
    llama_token              anchor_ = LLAMA_TOKEN_NULL;
    int32_t                  n_last_      = 0; // tokens of the target's last pass...
    int32_t                  n_outputs_   = 0; // ... of which the last so many have logits
    bool                     drafting_    = false;
    bool                     taps_leave_  = false; // whether its passes leave layer inputs for the drafter

    // Recurrent state after the first checkpoint_at_ held tokens.
    std::vector<uint8_t> checkpoint_;
    int32_t              checkpoint_at_ = 0;

    struct { int32_t syncs = 0, rebuilt = 0, launched = 0; } counts_; // since the round began
};
