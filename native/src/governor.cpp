#include "governor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

// The floors, and what is kept back for times that are known by their noise.
constexpr int32_t k_answer = 500, k_window = 200;
constexpr double  k_answer_share = 0.03, k_window_share = 0.10;
constexpr double  k_kept_back = 0.25, k_window_kept_back = 0.27;

constexpr double k_memory = 0.94;      // weight of what a round showed after one more: half after 11
constexpr double k_forget = 0.99;      // the same after a plain step, which shows nothing
constexpr double k_between = 0.5;      // and from one answer to the next
constexpr double k_prior_tries = 2, k_prior_rate = 0.8; // before anything is known of a position
constexpr double k_long_memory = 0.99, k_long_prior = 4; // the same for all positions and longer
constexpr double k_turned = 0.3;       // what is kept when a text that did not pay is accepted as a whole
constexpr double k_doubt  = 0.35;      // how much better acceptance may be than it looks, where little is known
constexpr double k_good_rate = 0.9;    // acceptance of a text that drafts well
constexpr double k_probing = 0.012;    // share of the tokens that tries may cost where nothing seems to pay
constexpr double k_stay   = 1.03;      // another width must be so much better: a graph is built for it

// A round before any was timed, in plain steps: a draft, and each row of a verify.
constexpr double  k_guess_draft = 0.8, k_guess_row = 0.2;
constexpr int32_t k_anchor = 2;    // plain steps in a row that tell how fast the machine is just now...
constexpr int32_t k_near   = 3;    // ... for so many rounds behind them
constexpr int32_t k_apart  = 32;   // rounds between two such times, once a width is known
constexpr int32_t k_sure   = 3;    // times of a width that are enough
constexpr int32_t k_stale  = 64;   // rounds after which fewer are forgotten
constexpr double  k_hiccup = 1.3;  // of two like rounds, where one met something else

constexpr int32_t k_widths[] = { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 };

} // namespace

slip_governor::slip_governor(int32_t block) : block_(block) {
    tries_.fill(0);
    hits_.fill(0);
    rounds_.fill(0);
}

// --- times -------------------------------------------------------------------

void slip_governor::set_costs(const slip_costs & costs) {
    plain_ms_ = costs.plain;
    for (int32_t w = 2; w <= block_; ++w) {
        times_[w] = {};
        if (costs.verify[w] > 0) {
            // The head runs for the tokens that are verified only.
            const double share = block_ > 2 ? double(w - 2) / (block_ - 2) : 1;
            const double draft = costs.draft_one + share * (costs.draft - costs.draft_one);
            times_[w].add((draft + costs.verify[w]) / costs.plain);
        }
    }
}

void slip_governor::times::add(double steps) {
    std::rotate(samples.begin(), samples.end() - 1, samples.end());
    samples[0] = steps;
    n          = std::min<int32_t>(n + 1, int32_t(samples.size()));
}

// Whatever else the machine does mostly adds: of few the least, of more the one in the middle.
double slip_governor::times::steps() const {
    std::vector<double> sorted(samples.begin(), samples.begin() + n);
    std::sort(sorted.begin(), sorted.end());
    return sorted[n < k_sure ? 0 : n / 2];
}

// What a round takes, in plain steps.
double slip_governor::steps(int32_t width) const {
    if (width < 2) {
        return 1;
    }
    if (times_[width].n > 0) {
        return times_[width].steps();
    }
    int32_t below = 1, above = width + 1;
    for (int32_t w = 2; w < width; ++w) {
        below = times_[w].n > 0 ? w : below;
    }
    while (above <= block_ && times_[above].n == 0) {
        ++above;
    }
    if (above <= block_) {
        // Down to a draft and a verify of one row, which costs half of what there is beyond a plain step.
        const double to = times_[above].steps(), from = below > 1 ? times_[below].steps() : 1 + (to - 1) / 2;
        return from + (to - from) * (width - below) / (above - below);
    }
    if (below == 1) {
        return 1 + k_guess_draft + k_guess_row * (width - 1);
    }
    const double from = times_[below].steps();
    return from + (from - 1) / 2 * (width - below) / (below - 1);
}

double slip_governor::cost(int32_t width) const {
    return steps(width) * plain_ms_;
}

// Two rounds one after the other meet the same machine, and that ratio is all that counts.
void slip_governor::time(int32_t width, double ms) {
    const bool sure = std::any_of(times_.begin(), times_.end(), [](const times & t) { return t.n >= k_sure; });
    for (int32_t w = 2; w <= block_; ++w) {
        times & t = times_[w];
        t.unused  = w == width ? 0 : t.unused + 1;
        if (sure && t.n < k_sure && t.unused > k_stale) {
            t.n = 0; // it may have met another program, and nobody would try again
        }
    }
    if (width == 1) {
        const double least = std::min(last_ms_, ms);
        plain_ms_ = in_row_ == 0 || last_ > 1 ? ms : std::max(last_ms_, ms) < k_hiccup * least ? (last_ms_ + ms) / 2 : least;
    } else if (in_row_ < k_near || last_ == 1) {
        times_[width].add(ms / plain_ms_);
    }
    in_row_     = (width == 1) == (last_ == 1) ? in_row_ + 1 : 1;
    last_       = width;
    last_ms_    = ms;
}

// --- choice ------------------------------------------------------------------

// `doubt`: how much of what is missing to certainty may be there after all, where nothing was tried.
double slip_governor::expected_tokens(int32_t width, double doubt) const {
    double tokens = 1, reached = 1, rate = (long_hits_ + k_long_prior * k_prior_rate) / (long_tries_ + k_long_prior);
    for (int32_t i = 1; i < width; ++i) {
        // A position behaves like the one before it until it has shown otherwise.
        const double n = tries_[i] + k_prior_tries;
        rate     = (hits_[i] + k_prior_tries * rate) / n;
        reached *= rate + doubt * (1 - rate) * k_prior_tries / n;
        tokens  += reached;
    }
    return tokens;
}

// What may still be lost, in plain steps. Counted anew each time: what a width costs is known better by now.
double slip_governor::credit() const {
    double balance = double(tokens_);
    for (int32_t w = 1; w <= block_; ++w) {
        balance -= rounds_[w] * steps(w);
    }
    double lost = 0, most = 0; // from the best moment of the last tokens on
    for (auto r = recent_.rbegin(); r != recent_.rend(); ++r) {
        lost += steps(r->width) - r->tokens;
        most  = std::max(most, lost);
    }
    return std::min(balance + (1 - k_kept_back) * k_answer_share * double(std::max<int64_t>(tokens_, k_answer)),
        (1 - k_window_kept_back) * k_window_share * k_window - most);
}

int32_t slip_governor::choose(int32_t most) {
    most = std::min(most, block_);
    int32_t best = 1, probe = 1;
    double  best_rate = 1;
    const double credit = this->credit();
    const auto consider = [&](int32_t w) {
        const double steps = this->steps(w), rate = expected_tokens(w, k_doubt) / steps * (w == last_ ? k_stay : 1);
        if (rate > best_rate && steps - 1 <= credit) {
            best      = w;
            best_rate = rate;
        }
        // The cheapest try of a width that would pay on a good text.
        const double good = (1 - std::pow(k_good_rate, w)) / (1 - k_good_rate);
        if (good > steps && (probe == 1 || steps < this->steps(probe))) {
            probe = w;
        }
    };
    for (const int32_t w : k_widths) {
        if (w < most) {
            consider(w);
        }
    }
    if (most > 1) {
        consider(most);
    }
    // Everything is measured by plain steps: not by old ones, nor, while little is known of a width, for long.
    const bool drafting = last_ > 1;
    if (best > 1 && (drafting ? in_row_ >= std::min(k_apart, k_near * times_[last_].n) : in_row_ < k_anchor)) {
        best = 1;
    }
    if (best > 1) {
        reason_ = best < most ? SLIP_REASON_PAYS : SLIP_REASON_WHOLE;
        return best;
    }
    const double since = drafting ? 0 : in_row_;
    const bool   probes = probe > 1 && since >= k_anchor && steps(probe) - 1 <= std::min(credit, k_probing * since);
    reason_ = probes ? SLIP_REASON_PROBE : SLIP_REASON_PLAIN;
    return probes ? probe : 1;
}

// --- rounds ------------------------------------------------------------------

void slip_governor::record(int32_t width, int32_t accepted, double ms) {
    time(width, ms);
    for (int32_t i = 1; i < width; ++i) {
        tries_[i] *= k_memory;
        hits_[i]  *= k_memory;
    }
    for (int32_t i = 1; i < width && i <= accepted + 1; ++i) {
        tries_[i] += 1;
        hits_[i]  += i <= accepted;
        long_tries_ += 1;
        long_hits_  += i <= accepted;
    }
    if (width > 1) {
        long_tries_ *= k_long_memory;
        long_hits_  *= k_long_memory;
    }
    if (reason_ == SLIP_REASON_PROBE && accepted == width - 1) {
        // The text has turned: what it was like before does not count any more.
        for (int32_t i = 1; i <= block_; ++i) {
            tries_[i] *= k_turned;
            hits_[i]  *= k_turned;
        }
        long_tries_ *= k_turned;
        long_hits_  *= k_turned;
    }
    for (int32_t i = 1; width == 1 && i <= block_; ++i) {
        tries_[i] *= k_forget;
        hits_[i]  *= k_forget;
    }

    recent_.push_back({ width, 1 + accepted });
    rounds_[width] += 1;
    tokens_ += 1 + accepted;
    for (recent_tokens_ += 1 + accepted; recent_tokens_ > k_window; recent_.pop_front()) {
        recent_tokens_ -= recent_.front().tokens;
    }
}

void slip_governor::begin_answer() {
    for (int32_t i = 1; i <= block_; ++i) {
        tries_[i] *= k_between;
        hits_[i]  *= k_between;
    }
    rounds_.fill(0);
    recent_.clear();
    tokens_ = recent_tokens_ = 0;
}
