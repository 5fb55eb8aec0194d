// How many tokens a verify will give: what drafts of this text have come to, and drafts before it.
//
// A text is of one kind for some tokens and then, perhaps, of another: a rate of acceptance holds for a while and
// changes at once. So for each of some rates it is kept how likely it is now (Bayes' rule, by what was accepted) and
// how common it has been, to which the former returns token by token. Late positions of a block are accepted more
// rarely than early ones; by how much is learned over all texts. That a rate is uncertain is part of what is expected:
// a wide block may pay where its mean would not.

#pragma once

#include "slipstream.h"

#include <array>
#include <cstdint>

class slip_acceptance {
public:
    slip_acceptance();

    // Of a verify of 1 to SLIP_MAX_BLOCK tokens: how many it will give.
    std::array<double, SLIP_MAX_BLOCK + 1> expected_tokens() const;

    // `accepted` of `width` - 1 drafted tokens.
    void record(int32_t width, int32_t accepted);

    // Another text: as common as rates have been, with some doubt.
    void begin_answer();

    // What is known of texts. False: it is none, and nothing is changed.
    slip_learned learned() const;
    bool set_learned(const slip_learned & learned);

private:
    static constexpr int k_rates = SLIP_ACCEPTANCE_RATES;
    using rates = std::array<double, k_rates>;

    double rate_at(int rate, int32_t position) const;

    rates   now_, ever_, kept_; // shares that sum up to 1: now, over the last rounds, and over the beginnings of answers
    int32_t tokens_ = 0;        // of this answer
    std::array<double, SLIP_MAX_BLOCK + 1> hits_ = {}, foreseen_ = {}; // of position i, from 1, over many rounds
};
