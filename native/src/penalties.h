// What biases and penalties make of the logits before anything is chosen.

#pragma once

#include "slipstream.h"

#include <cstdint>
#include <vector>

// Their values, see slip_sampling: checked, and the biases one a token, by ascending id.
struct slip_penalties {
    slip_penalties() = default;

    // Throws SLIP_ERROR_OPTION for values that cannot be used with `n_vocab` tokens.
    slip_penalties(const slip_sampling & options, int32_t n_vocab);

    // Whether what came before changes any logit.
    bool count() const { return last_n != 0 && (presence != 0 || frequency != 0 || repeat != 1); }

    // Whether any logit is changed.
    bool any() const { return count() || !biases.empty(); }

    // How many of `n_before` tokens count.
    int32_t window(int32_t n_before) const { return last_n < 0 || last_n > n_before ? n_before : last_n; }

    // Changes the `n_vocab` logits of the place behind `before`.
    void apply(const int32_t * before, int32_t n_before, float * logits, int32_t n_vocab);

    float   presence = 0, frequency = 0, repeat = 1;
    int32_t last_n = 0;
    std::vector<slip_bias> biases;

private:
    std::vector<int32_t> counted_; // [n_vocab] zeros between calls
};
