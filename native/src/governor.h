// Which width a round should verify: the anchor and width - 1 drafted tokens; 1 is a plain step.
//
// A round of width w takes T(w) and gives E(w) tokens, 1 to w. With a_i the chance that position i
// is accepted once those before it were,
//     E(w) = 1 + sum over k < w of a_1 a_2 ... a_k
// (acceptance.h). The governor takes the w with the most tokens a second, a plain step included. T
// comes from the rounds themselves (costs given beforehand only start it). What it does not know it
// tries, on credit:
//   - an answer may fall behind plain decoding by 3 % of its tokens, of 500 if it is shorter,
//   - and by 10 % within any 200 tokens,
// counted in plain steps by the times as learned, so that another program's load is not mistaken
// for a width's cost. Gains are credit too.

#pragma once

#include "acceptance.h"
#include "slipstream.h"

#include <array>
#include <cstdint>
#include <deque>

class slip_governor {
public:
    // `block`: the trained block size, the largest width.
    explicit slip_governor(int32_t block);

    // What is known from before, in milliseconds; verify[w] may be 0. It counts until rounds tell better.
    void set_costs(const slip_costs & costs);

    // The width of the next round, at most `most`, and why.
    int32_t choose(int32_t most);
    slip_reason reason() const { return reason_; }

    // What a round did: `accepted` of `width` - 1 drafted tokens, of which the first `own` are the drafter's, in `ms`
    // milliseconds. `built`: a device built or captured graphs in it, which the rounds after it are spared.
    void record(int32_t width, int32_t accepted, int32_t own, double ms, bool built = false);

    // What a round gave whose draft was not the drafter's. It says nothing of that, nor of what a draft takes; its gains
    // and losses are the answer's.
    void count(int32_t width, int32_t tokens) { count(width, tokens, 0); }

    // A new answer: what is known of texts is kept with less weight, and what the last one lost is
    // no debt of this one, or a short answer that drafted badly would switch drafting off for the next.
    void begin_answer();

    // What was learned of texts, to be given to a governor of the same pair. False: it is damaged.
    slip_learned learned() const { return acceptance_.learned(); }
    bool set_learned(const slip_learned & learned) { return acceptance_.set_learned(learned); }

    // What a round of `width` takes now, as far as is known, in milliseconds.
    double cost(int32_t width) const;

private:
    // What rounds of a width took, in plain steps beside them.
    struct times {
        std::array<double, 9> samples = {}; // the latest first
        int32_t n = 0, unused = 0;

        void   add(double steps);
        double steps() const;
    };

    using by_width = std::array<double, SLIP_MAX_BLOCK + 1>;

    void   count(int32_t width, int32_t tokens, double built);
    void   time(int32_t width, double ms);
    bool   sure() const;
    bool   forget(int32_t unused);
    void   tabulate();
    double between(const by_width & known, int32_t width) const;
    double steps(int32_t width) const { return steps_[width]; }
    double balance() const;
    double credit() const;

    int32_t     block_;
    slip_reason reason_ = SLIP_REASON_FIXED;

    std::array<times, SLIP_MAX_BLOCK + 1> times_; // of a width
    by_width given_ = {};                         // the same as known from before; 0: it is not
    double   given_plain_ = 0;                    // the plain step beside which they were measured
    by_width steps_;                              // what follows from both
    double  plain_ms_ = 0;                        // of the last plain steps
    double  last_ms_  = 0;                        // of the round before
    bool    doubted_ = false;                     // whether the last drafted one took too long to be believed at once
    int32_t building_ = 0;                        // rounds in a row that were not timed, since graphs were built in them
    int32_t patience_;                            // rounds after which an answer begins without few old times, where no width is sure
    int32_t last_ = 1, in_row_ = 0;               // its width; and how many were like it, plain or drafted

    slip_acceptance acceptance_;

    // The answer so far.
    struct round { int32_t width, tokens; double built; }; // built: what it took, in plain steps, while graphs were built
    double beyond(const round & r) const;
    std::array<int64_t, SLIP_MAX_BLOCK + 1> rounds_; // of a width
    std::deque<round> recent_;                       // of the last 200 tokens
    int64_t tokens_ = 0, recent_tokens_ = 0;
};
