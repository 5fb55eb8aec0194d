// Which width a round should verify: the anchor and width - 1 drafted tokens; 1 is a plain step.
//
// A round of width w costs draft + verify(w) and gives E(w) tokens, 1 to w. With a_i the chance
// that position i is accepted once those before it were,
//     E(w) = 1 + sum over k < w of a_1 a_2 ... a_k.
// The governor takes the w with the most tokens a second, a plain step included. What it does not
// know it must try, and a text may turn at any moment: so it never risks more than 2.25 % of any 200
// tokens' plain time in an answer, counted exactly, and 1 % where nothing is expected to pay. Where a draft is
// dear (three plain steps and more on a CPU) this caution costs speed on texts of middling acceptance:
// after a round that fails it must wait until others have gained.

#pragma once

#include "slipstream.h"

#include <array>
#include <cstdint>
#include <deque>

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

    // A new answer: what is known of the text is forgotten by half, and what the last one lost is no debt
    // of this one, or a short answer that drafted badly would switch drafting off for those behind it.
    void begin_answer();

    // What a round of `width` takes by the costs it was given, in milliseconds.
    double base_cost(int32_t width) const;

private:
    double cost(int32_t width) const;
    double expected_tokens(int32_t width) const;
    double lost() const;

    int32_t     block_;
    slip_costs  costs_  = {};
    slip_reason reason_ = SLIP_REASON_FIXED;
    int32_t     last_ = 0; // width of the round before
    // Tokens so far, and the time they would have taken by plain steps less the time they took.
    struct moment { int64_t token; double balance; };
    std::deque<moment> moments_; // before each round of the last 200 tokens
    int64_t tokens_  = 0;
    double  balance_ = 0; // in plain steps

    std::array<double, SLIP_MAX_BLOCK + 1> tries_, hits_; // of position i, from 1
    std::array<double, SLIP_MAX_BLOCK + 1> drift_;        // measured over expected time of a width
};
