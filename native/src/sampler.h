// The target's choice at one position.

#pragma once

#include "slipstream.h"

#include "llama.h"

#include <cstdint>
#include <vector>

class slip_sampler {
public:
    slip_sampler() = default;

    // Throws SLIP_ERROR_OPTION for values that cannot be used.
    explicit slip_sampler(const slip_sampling & options);

    // Whether the target's graph chooses (greedy, or sampling on the device): then choose() is not
    // for it, and no logits come to the host.
    bool on_device() const;

    // Makes passes of `ctx` end in what this sampler needs; it must stay where it is meanwhile.
    void install(llama_context * ctx) const;

    // Token for absolute position `position`, given its `n_vocab` logits. Greedy takes the
    // largest (the lowest id among equals). Sampling keeps the top_k largest, of those the
    // smallest set that reaches top_p, of those the ones at least min_p times as likely as
    // the best, and takes argmax(logit / temperature + G(seed, position, token)), G from the
    // standard Gumbel distribution: that draws from the softmax (Gumbel-max), and because
    // each token has its own G, rounding in one logit cannot move the choice among others.
    // Among NaN (sampling: or with infinity) nothing is likeliest: the choice is token 0, as it is
    // in a device's graph, and who gets 0 looks at the logits.
    int32_t choose(const float * logits, int32_t n_vocab, int32_t position);

private:
    bool greedy() const;
    void keep_top_k(const float * logits);
    void keep_top_p(const float * logits);
    void keep_min_p(const float * logits);

    slip_sampling        options_ = {};
    std::vector<int32_t> kept_; // token ids that are still candidates
};
