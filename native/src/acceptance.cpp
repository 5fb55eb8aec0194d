#include "acceptance.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace {

constexpr double k_grid[]  = { 0.02, 0.15, 0.30, 0.45, 0.58, 0.70, 0.80, 0.88, 0.94, 0.985 };
constexpr double k_first[] = { 0.06, 0.06, 0.06, 0.08, 0.10, 0.14, 0.16, 0.16, 0.10, 0.08 }; // how common before any was seen

constexpr double k_turn     = 0.01;  // chance that a token begins another kind of text
constexpr double k_learn    = 0.1;   // weight of a round in how common rates are
constexpr double k_keep     = 0.05;  // the same in what is kept for other answers to begin with...
constexpr int32_t k_beginning = 128; // ... which is learned from so many tokens of each
constexpr double k_open     = 0.2;   // share of what a text turns to that may be anything
constexpr double k_doubt    = 0.3;   // the same of another text
constexpr double k_memory   = 0.98;  // of a round in what positions differ by
constexpr double k_remembered = 1 / (1 - k_memory) + 1; // rounds, at most
constexpr double k_position = 15;    // rounds before that counts
constexpr double k_most     = 0.995; // nothing is certain

} // namespace

slip_acceptance::slip_acceptance() {
    std::copy(std::begin(k_first), std::end(k_first), ever_.begin());
    now_ = kept_ = ever_;
}

double slip_acceptance::rate_at(int rate, int32_t position) const {
    return std::min(k_most, k_grid[rate] * (hits_[position] + k_position) / (foreseen_[position] + k_position));
}

std::array<double, SLIP_MAX_BLOCK + 1> slip_acceptance::expected_tokens() const {
    std::array<double, SLIP_MAX_BLOCK + 1> out;
    out.fill(1);
    for (int rate = 0; rate < k_rates; ++rate) {
        double tokens = 0, reached = 1;
        for (int32_t i = 1; i < SLIP_MAX_BLOCK; ++i) {
            reached    *= rate_at(rate, i);
            tokens     += reached;
            out[i + 1] += now_[rate] * tokens;
        }
    }
    return out;
}

void slip_acceptance::record(int32_t width, int32_t accepted) {
    const int32_t seen = std::min(width - 1, accepted + 1); // behind the first one that is refused nothing is known
    if (seen > 0) {
        std::array<double, SLIP_MAX_BLOCK + 1> foreseen = {};
        rates  likely = now_;
        double sum = 0;
        for (int rate = 0; rate < k_rates; ++rate) {
            for (int32_t i = 1; i <= seen; ++i) {
                const double r = rate_at(rate, i);
                foreseen[i]  += now_[rate] * r;
                likely[rate] *= i <= accepted ? r : 1 - r;
            }
            sum += likely[rate];
        }
        for (int rate = 0; rate < k_rates; ++rate) {
            now_[rate]   = likely[rate] / sum;
            ever_[rate] += k_learn * (now_[rate] - ever_[rate]);
            kept_[rate] += (tokens_ < k_beginning ? k_keep : 0) * (now_[rate] - kept_[rate]);
        }
        for (int32_t i = 1; i <= seen; ++i) {
            hits_[i]     = hits_[i] * k_memory + (i <= accepted);
            foreseen_[i] = foreseen_[i] * k_memory + foreseen[i];
        }
    }
    tokens_ += 1 + accepted;
    const double turned = 1 - std::pow(1 - k_turn, 1 + accepted);
    for (int rate = 0; rate < k_rates; ++rate) {
        now_[rate] += turned * ((1 - k_open) * ever_[rate] + k_open * k_first[rate] - now_[rate]);
    }
}

void slip_acceptance::begin_answer() {
    tokens_ = 0;
    for (int rate = 0; rate < k_rates; ++rate) {
        now_[rate] = (1 - k_doubt) * ever_[rate] + k_doubt * k_first[rate];
    }
}

slip_learned slip_acceptance::learned() const {
    slip_learned out = {};
    out.size = sizeof(out);
    std::copy(kept_.begin(), kept_.end(), out.common);
    std::copy(hits_.begin(), hits_.end(), out.hits);
    std::copy(foreseen_.begin(), foreseen_.end(), out.foreseen);
    return out;
}

bool slip_acceptance::set_learned(const slip_learned & learned) {
    const auto counts = [](const auto & of) {
        return std::all_of(std::begin(of), std::end(of), [](double x) { return x >= 0 && x <= k_remembered; }); // a NaN is not
    };
    const double sum = std::accumulate(std::begin(learned.common), std::end(learned.common), 0.0);
    if (!counts(learned.common) || !counts(learned.hits) || !counts(learned.foreseen) || std::fabs(sum - 1) > 1e-3) {
        return false;
    }
    std::transform(std::begin(learned.common), std::end(learned.common), kept_.begin(), [sum](double x) { return x / sum; });
    ever_ = kept_;
    std::copy(std::begin(learned.hits), std::end(learned.hits), hits_.begin());
    std::copy(std::begin(learned.foreseen), std::end(learned.foreseen), foreseen_.begin());
    begin_answer();
    return true;
}
