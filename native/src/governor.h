// Which width a round should verify: the anchor and width - 1 drafted tokens; 1 is a plain step.
//
// A round of width w costs draft + verify(w) and gives E(w) tokens, 1 to w. With a_i the chance
// that position i is accepted once those before it were,
//     E(w) = 1 + sum over k < w of a_1 a_2 ... a_k.
// The governor takes the w with the most tokens a second, a plain step included. What it does not
// know it must try, and trying may lose time: so every round that may lose draws on a budget,
// counted in plain steps, that gains fill at once and time fills slowly. In 200 tokens at most
//     k_budget + k_debt + 200 * k_refill = 3 + 2 + 1 = 6 plain steps
// are lost, 3 %, whatever the text.

#pragma once

#include "slipstream.h"

#include <array>
#include <cstdint>

class slip_governor {
public:
    // `block`: the trained block size, the largest width.
    explicit slip_governor(int32_t block);

    // Times in milliseconds, see slip_costs. verify[w] of 0 is filled in from its neighbours.
    void set_costs(const slip_costs & costs);
    bool has_costs() const { return costs_.plain > 0; }

    // The width of the next round, at most `most`, and why.
    int32_t choose(int32_t most);
    slip_reason reason() const { return reason_; }

    // What a round did: `accepted` of `width` - 1 drafted tokens, in `ms` milliseconds.
    void record(int32_t width, int32_t accepted, double ms);

    // A new answer: what is known of the text is forgotten by half, the costs stay.
    void begin_answer();

private:
    double cost(int32_t width) const;
    double expected_tokens(int32_t width, double caution) const;

    int32_t     block_;
    slip_costs  costs_  = {};
    slip_reason reason_ = SLIP_REASON_FIXED;
    double      budget_;
    int32_t     last_ = 0; // width of the round before
    std::array<double, SLIP_MAX_BLOCK + 1> tries_, hits_; // of position i, from 1
    std::array<double, SLIP_MAX_BLOCK + 1> drift_;        // measured over expected time of a width
};
