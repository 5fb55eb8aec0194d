#include "penalties.h"

#include "failure.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

// Beyond these a logit would become infinite: the host and a device choose differently among such.
constexpr float k_most = 1e30f, k_most_repeat = 1e4f;

static bool usable(float value) {
    return std::fabs(value) <= k_most; // not for NaN
}

slip_penalties::slip_penalties(const slip_sampling & options, int32_t n_vocab) :
    presence(options.presence_penalty),
    frequency(options.frequency_penalty),
    repeat(options.repeat_penalty),
    last_n(options.penalty_last_n) {
    const bool valid = usable(presence) && usable(frequency) && repeat >= 1 / k_most_repeat && repeat <= k_most_repeat && last_n >= -1 &&
        options.n_biases >= 0 && (options.biases || options.n_biases == 0);
    if (!valid) {
        throw slip_failure(SLIP_ERROR_OPTION, "The penalties are out of range.");
    }
    biases.assign(options.biases, options.biases + options.n_biases);
    std::stable_sort(biases.begin(), biases.end(), [](const slip_bias & a, const slip_bias & b) { return a.token < b.token; });
    size_t n = 0;
    for (const slip_bias & bias : biases) {
        const bool again = n > 0 && biases[n - 1].token == bias.token;
        const float sum  = bias.bias + (again ? biases[n - 1].bias : 0);
        if (bias.token < 0 || bias.token >= n_vocab || !usable(sum)) {
            throw slip_failure(SLIP_ERROR_OPTION, "The bias of token " + std::to_string(bias.token) + " cannot be used.",
                "Use a token of the vocabulary and a number up to 1e30.");
        }
        n += !again;
        biases[n - 1] = { bias.token, sum };
    }
    biases.resize(n);
}

void slip_penalties::apply(const int32_t * before, int32_t n_before, float * logits, int32_t n_vocab) {
    for (const slip_bias & bias : biases) {
        logits[bias.token] += bias.bias;
    }
    if (!count()) {
        return;
    }
    counted_.resize(n_vocab);
    const int32_t * const end = before + n_before;
    const int32_t * const start = end - window(n_before);
    std::for_each(start, end, [&](int32_t token) { ++counted_[token]; });
    std::for_each(start, end, [&](int32_t token) {
        if (const int32_t n = std::exchange(counted_[token], 0)) {
            float & logit = logits[token];
            logit = logit > 0 ? logit / repeat : logit * repeat;
            logit -= n * frequency + presence;
        }
    });
}
