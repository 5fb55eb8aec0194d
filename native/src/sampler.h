// The target's choice at one position.

#pragma once

#include "device_sampler.h"
#include "penalties.h"
#include "slipstream.h"

#include "llama.h"

#include <cstdint>
#include <vector>

class slip_sampler {
public:
    slip_sampler() = default;

    // `watches`: of the graph, see slip_device_sampler. Throws SLIP_ERROR_OPTION for values that cannot be used with
    // `n_vocab` tokens.
    slip_sampler(const slip_sampling & options, int32_t n_vocab, bool watches);

    // Whether the target's graph chooses (greedy, or sampling on the device): then choose() is not
    // for it, and no logits come to the host.
    bool on_device() const;

    // Makes the next pass of `ctx` end in what this sampler needs, which must stay where it is meanwhile. The pass has
    // `n_rows` rows, 1 or more, the first of which comes behind `before` and each other one behind one token more.
    void install(llama_context * ctx, const int32_t * before, int32_t n_before, int32_t n_rows);

    // Token for absolute position `position`, given its logits and the tokens before it, for penalties. Greedy takes the
    // largest (the lowest id among equals). Sampling keeps the top_k largest, of those the
    // smallest set that reaches top_p, of those the ones at least min_p times as likely as
    // the best, and takes argmax(logit / temperature + G(seed, position, token)), G from the
    // standard Gumbel distribution: that draws from the softmax (Gumbel-max), and because
    // each token has its own G, rounding in one logit cannot move the choice among others.
    // Among NaN or with infinity nothing is likeliest: LLAMA_TOKEN_NULL.
    int32_t choose(const float * logits, const int32_t * before, int32_t n_before, int32_t position);

    // What chooses in the graph; nullptr where nothing does or it is nothing but an argmax.
    slip_device_sampler * device();

private:
    bool greedy() const;
    void keep_top_k(const float * logits);
    void keep_top_p(const float * logits);
    void keep_min_p(const float * logits);

    slip_sampling        options_ = {};
    slip_penalties       penalties_;
    slip_device_sampler  device_;
    bool                 watches_ = false;
    int32_t              n_vocab_ = 0;
    std::vector<float>   penalised_;
    std::vector<int32_t> kept_; // token ids that are still candidates
};
