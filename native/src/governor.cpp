#include "governor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

// The floors, and what is kept back for times that are known by their noise.
constexpr int32_t k_answer = 500, k_window = 200;
constexpr double  k_answer_share = 0.03, k_window_share = 0.10;
constexpr double  k_kept_back = 0.30, k_window_kept_back = 0.22;

constexpr double k_good_rate = 0.95;   // acceptance of a text that drafts well
constexpr double k_probing = 0.03;     // share of the tokens that tries may cost where nothing seems to pay

// A round before any was timed, in plain steps: a draft, and each row of a verify.
constexpr double  k_guess_draft = 0.8, k_guess_row = 0.2;
constexpr int32_t k_anchor = 2;    // plain steps in a row that tell how fast the machine is just now...
constexpr int32_t k_near   = 3;    // ... for so many rounds behind them
constexpr int32_t k_apart  = 32;   // rounds between two such times, once a width is known
constexpr int32_t k_sure   = 3;    // times of a width that are enough
constexpr int32_t k_stale  = 64;   // rounds after which fewer are forgotten
constexpr int32_t k_small  = 6;    // the widest try before any width was timed: on a slow device it is a loss
constexpr double  k_unlikely = 1.5; // of what a first time should be: it is believed when it happens again
constexpr int32_t k_building = 2;  // rounds of a new shape that a device builds graphs in: it evaluates one, and captures the next
constexpr double  k_hiccup = 1.3;  // of two like rounds, where one met something else
constexpr double  k_hour   = 1.4;  // plain steps that are so much faster than when costs were measured belong to another hour
constexpr double  k_given  = 1;    // times that what is given counts for, against what rounds say of how true it is

constexpr int32_t k_widths[] = { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 };

} // namespace

slip_governor::slip_governor(int32_t block) : block_(block), patience_(k_stale) {
    rounds_.fill(0);
    tabulate();
}

// --- times -------------------------------------------------------------------

void slip_governor::set_costs(const slip_costs & costs) {
    plain_ms_ = given_plain_ = costs.plain;
    for (int32_t w = 2; w <= block_; ++w) {
        times_[w] = {};
        given_[w] = 0;
        if (costs.verify[w] > 0) {
            // On a card the head runs for the tokens that are verified only. A processor's drafts grow in three steps,
            // which rounds tell soon.
            const double share = block_ > 2 ? double(w - 2) / (block_ - 2) : 1;
            const double draft = costs.draft_one + share * (costs.draft - costs.draft_one);
            given_[w] = (draft + costs.verify[w]) / costs.plain;
        }
    }
    tabulate();
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

bool slip_governor::sure() const {
    return std::any_of(times_.begin(), times_.end(), [](const times & t) { return t.n >= k_sure; });
}

// Few times may have met another program, and nobody would try again. Returns whether any was forgotten.
bool slip_governor::forget(int32_t unused) {
    bool any = false;
    for (times & t : times_) {
        if (t.n > 0 && t.n < k_sure && t.unused > unused) {
            t.n = 0;
            any = true;
        }
    }
    return any;
}

// What rounds take, in plain steps: by their times, else by what is given, which may come from another hour and is
// corrected by the widths that are known both ways, else by the widths beside them.
void slip_governor::tabulate() {
    by_width known = {};
    double sum = k_given, n = k_given;
    for (int32_t w = 2; w <= block_; ++w) {
        if (times_[w].n > 0) {
            known[w] = times_[w].steps();
            if (given_[w] > 0) {
                const double weight = std::min(times_[w].n, k_sure);
                sum += weight * known[w] / given_[w];
                n   += weight;
            }
        }
    }
    for (int32_t w = 2; w <= block_; ++w) {
        known[w] = known[w] > 0 ? known[w] : given_[w] * sum / n;
    }
    steps_.fill(1);
    for (int32_t w = 2; w <= block_; ++w) {
        steps_[w] = known[w] > 0 ? known[w] : between(known, w);
    }
}

double slip_governor::between(const by_width & known, int32_t width) const {
    int32_t below = 1, above = width + 1;
    for (int32_t w = 2; w < width; ++w) {
        below = known[w] > 0 ? w : below;
    }
    while (above <= block_ && known[above] == 0) {
        ++above;
    }
    if (above <= block_) {
        // Down to a draft and a verify of one row, which costs half of what there is beyond a plain step.
        const double to = known[above], from = below > 1 ? known[below] : 1 + (to - 1) / 2;
        return from + (to - from) * (width - below) / (above - below);
    }
    if (below == 1) {
        return 1 + k_guess_draft + k_guess_row * (width - 1);
    }
    const double from = known[below];
    return from + (from - 1) / 2 * (width - below) / (below - 1);
}

double slip_governor::cost(int32_t width) const {
    return steps(width) * plain_ms_;
}

// Two rounds one after the other meet the same machine, and that ratio is all that counts.
void slip_governor::time(int32_t width, double ms) {
    for (int32_t w = 2; w <= block_; ++w) {
        times_[w].unused = w == width ? 0 : times_[w].unused + 1;
    }
    if (sure()) {
        forget(k_stale);
    }
    if (width == 1) {
        const double least = std::min(last_ms_, ms);
        plain_ms_ = in_row_ == 0 || last_ > 1 ? ms : std::max(last_ms_, ms) < k_hiccup * least ? (last_ms_ + ms) / 2 : least;
        if (in_row_ > 0 && last_ == 1 && given_plain_ > k_hour * plain_ms_) {
            given_.fill(0); // they come from a busy hour
        }
    } else if (in_row_ < k_near || last_ == 1) {
        const double steps = ms / plain_ms_; // the first may hold the reading of the drafter's weights from the disk
        doubted_ = times_[width].n == 0 && !doubted_ && steps > k_unlikely * this->steps(width);
        if (!doubted_ && steps > 1) { // else it was the plain ones that met another program
            times_[width].add(steps);
        }
    }
    in_row_     = (width == 1) == (last_ == 1) ? in_row_ + 1 : 1;
    last_       = width;
    last_ms_    = ms;
    tabulate();
}

// --- choice ------------------------------------------------------------------

// What the answer has gained, in plain steps. Counted anew each time: what a width costs is known better by now.
double slip_governor::balance() const {
    double out = double(tokens_);
    for (int32_t w = 1; w <= block_; ++w) {
        out -= rounds_[w] * steps(w);
    }
    for (const round & r : recent_) {
        out -= beyond(r);
    }
    return out;
}

// What a round took while its device built graphs may be what the width takes, until one was timed.
double slip_governor::beyond(const round & r) const {
    return times_[r.width].n == 0 ? std::max(0.0, r.built - steps(r.width)) : 0;
}

// What may still be lost, in plain steps.
double slip_governor::credit() const {
    double lost = 0, most = 0; // from the best moment of the last tokens on
    for (auto r = recent_.rbegin(); r != recent_.rend(); ++r) {
        lost += steps(r->width) + beyond(*r) - r->tokens;
        most  = std::max(most, lost);
    }
    return std::min(balance() + (1 - k_kept_back) * k_answer_share * double(std::max<int64_t>(tokens_, k_answer)),
        (1 - k_window_kept_back) * k_window_share * k_window - most);
}

int32_t slip_governor::choose(int32_t most) {
    const bool    timed = std::any_of(times_.begin(), times_.end(), [](const times & t) { return t.n > 0; });
    const int32_t whole = std::min(most, block_);
    most = timed ? whole : std::min(whole, k_small);
    int32_t best = 1, probe = 1;
    double  best_rate = 1;
    const double credit   = this->credit();
    const auto   expected = acceptance_.expected_tokens();
    const auto   consider = [&](int32_t w) {
        const double steps = this->steps(w), rate = expected[w] / steps;
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
        reason_ = best < whole ? SLIP_REASON_PAYS : SLIP_REASON_WHOLE;
        return best;
    }
    const double since = drafting ? 0 : in_row_;
    const double price  = balance() > 0 ? steps(probe) - expected[probe] : steps(probe) - 1; // gains may be put into tries
    const bool   probes = probe > 1 && since >= k_anchor && steps(probe) - 1 <= credit && price <= k_probing * since;
    reason_ = probes ? SLIP_REASON_PROBE : SLIP_REASON_PLAIN;
    return probes ? probe : 1;
}

// --- rounds ------------------------------------------------------------------

void slip_governor::record(int32_t width, int32_t accepted, int32_t own, double ms, bool built) {
    building_ = built && building_ < k_building ? building_ + 1 : 0;
    // Building only adds: what is less than was thought is news all the same.
    if (building_ == 0 || (width > 1 && ms < cost(width))) {
        time(width, ms);
    }
    acceptance_.record(1 + own, std::min(accepted, own));
    count(width, 1 + accepted, building_ > 0 && plain_ms_ > 0 ? ms / plain_ms_ : 0);
}

void slip_governor::count(int32_t width, int32_t tokens, double built) {
    recent_.push_back({ width, tokens, width > 1 ? built : 0 });
    rounds_[width] += 1;
    tokens_ += tokens;
    for (recent_tokens_ += tokens; recent_tokens_ > k_window; recent_.pop_front()) {
        recent_tokens_ -= recent_.front().tokens;
    }
}

void slip_governor::begin_answer() {
    acceptance_.begin_answer();
    if (!sure() && forget(patience_)) {
        patience_ *= 4; // where no width pays, each try is a loss
        tabulate();
    }
    rounds_.fill(0);
    recent_.clear();
    tokens_ = recent_tokens_ = 0;
}
