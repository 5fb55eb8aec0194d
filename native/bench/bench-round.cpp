// What a round costs on a device, through slipstream.h, and what that means at a synthetic mean
// accepted length. Prints one JSON object.
//
//     bench-round DEVICE TARGET.gguf DRAFT.gguf [MEAN_LENGTH] [ROUNDS] [texts | speeds [SECONDS] | at TOKENS [CACHE]]
//
// `texts`: also answers of nine kinds of text under the governor, minutes on a processor. `speeds`: tokens a second alone,
// plain and under the governor, of an answer of eight times ROUNDS tokens each, or of what SECONDS are enough for, again
// for each line of stdin: for a busy machine, where a median is not what an answer takes, and a load not what is asked.
// `at`: only a plain step and a round of the whole block, behind so many tokens, with that type of the target's cache.
//
// A round's graphs have one shape whatever is accepted, so a pair with random weights is timed like
// a trained one. The governor is the product's own, given the times as they are and acceptance
// drawn at random: the only place where acceptance is made up.

#include "governor.h"
#include "opened-pair.h"
#include "texts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int k_prompt = 300, k_warm = 5;

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

// As slip_round_governed sees it.
bool built_graphs(const opened_pair & pair, const slip_round_result & result) {
    return pair.info.device.kind != SLIP_DEVICE_CPU && result.n_graphs_rebuilt > 0;
}

double round_ms(opened_pair & pair, int n_draft, slip_round_result & result) {
    const double start = now_ms();
    result = pair.round(n_draft);
    return now_ms() - start;
}

// Median time of a round; the last one's counters in `result`.
double time_rounds(opened_pair & pair, int n_draft, slip_verify verify, int rounds, slip_round_result & result, float presence = 0,
                   int n_prompt = k_prompt) {
    pair.read_prompt(n_prompt, n_draft > 0, verify, presence);
    std::vector<double> times;
    for (int i = 0; i < k_warm + rounds; ++i) {
        const double ms = round_ms(pair, n_draft, result);
        if (i >= k_warm) {
            times.push_back(ms);
        }
    }
    return median(times);
}

// The most tokens a second that one width gives where each position is accepted at that rate, and the width.
double best_fixed(const device & d, double rate, int & best_width) {
    double best = 1e3 / d.plain, tokens = 1, reached = 1;
    int    counted = 1;
    best_width = 1;
    for (const auto & [width, ms] : d.rounds) {
        for (; counted < width; ++counted) {
            reached *= rate;
            tokens  += reached;
        }
        if (tokens / ms * 1e3 > best) {
            best       = tokens / ms * 1e3;
            best_width = width;
        }
    }
    return best;
}

// The chance of each position that gives a mean accepted length over a block: 1 + p + p^2 + ...
double rate_of(double length, int block) {
    double low = 0, high = 1;
    for (int i = 0; i < 60; ++i) {
        const double p = (low + high) / 2;
        double sum = 0, reached = 1;
        for (int k = 0; k < block; ++k, reached *= p) {
            sum += reached;
        }
        (sum < length ? low : high) = p;
    }
    return low;
}

// A governor as one of that pair begins: a card's knows what rounds take.
slip_governor new_governor(opened_pair & pair) {
    slip_governor governor(pair.info.block);
    if (std::string(pair.info.device.name).rfind("CUDA", 0) == 0) {
        governor.set_costs(pair.costs());
    }
    return governor;
}

// Tokens a second under the governor at that acceptance, and the mean width it chose.
double governed(opened_pair & pair, int block, double rate, int tokens, double most_ms, double & mean_width) {
    slip_governor governor = new_governor(pair);
    std::mt19937 random(1);
    pair.read_prompt(k_prompt, true, SLIP_VERIFY_GREEDY);
    double total = 0;
    int    done = 0, rounds = 0, widths = 0;
    while (done < tokens && total < most_ms) {
        const int width = governor.choose(block);
        slip_round_result result;
        const double ms = round_ms(pair, width - 1, result);
        int accepted = 0;
        while (accepted < width - 1 && std::generate_canonical<double, 32>(random) < rate) {
            ++accepted;
        }
        governor.record(width, accepted, width - 1, ms, built_graphs(pair, result));
        total  += ms;
        done   += 1 + accepted;
        widths += width;
        ++rounds;
    }
    mean_width = double(widths) / rounds;
    return done / total * 1e3;
}

// An answer of a text under the governor, decoded by rounds of the pair: against plain decoding, the whole of it, the
// worst 200 tokens of it, and from token 64 on; and that last against the best fixed width. As in test-governor, rounds
// are judged by what they take in the middle, and the governor hears what each took.
struct outcome { double answer, window, settled, share; };

outcome on_text(opened_pair & pair, const device & d, const text & t, int block) {
    constexpr int k_tokens = 600;
    slip_governor governor = new_governor(pair);
    std::mt19937  random(1);
    governor.begin_answer();
    pair.read_prompt(k_prompt, true, SLIP_VERIFY_GREEDY);
    slip_round_result result;
    double ms = 0;
    const auto choose = [&] {
        const int width = governor.choose(block);
        ms = round_ms(pair, width - 1, result);
        return width;
    };
    const auto times = decode(d, t, k_tokens, random, choose, [&](int width, int accepted, int) {
        governor.record(width, accepted, width - 1, ms, built_graphs(pair, result));
    });
    const double settled = rate(times, k_settled, times.size());
    return { rate(times, 0, times.size()), worst_window(times), settled, settled / best_fixed(d, t, k_tokens, 8) };
}

void print_texts(opened_pair & pair, const device & d, int block) {
    const char * separator = "";
    for (const text & t : k_texts) {
        const outcome o = on_text(pair, d, t, block);
        std::printf("%s\"%s\": {\"answer\": %.3f, \"window\": %.3f, \"settled\": %.3f, \"share\": %.3f, \"asked\": %.2f}", separator, t.name,
            o.answer, o.window, o.settled, o.share, t.share);
        separator = ", ";
    }
}

// Tokens a second of plain decoding.
double plain_speed(opened_pair & pair, int tokens, double most_ms) {
    pair.read_prompt(k_prompt, false, SLIP_VERIFY_GREEDY);
    slip_round_result result;
    double total = 0;
    int    done  = 0;
    for (; done < tokens && total < most_ms; ++done) {
        total += round_ms(pair, 0, result);
    }
    return done / total * 1e3;
}

// Both in turns; each turn's first rounds make the graphs of its cache.
int at_context(const char * place, const char * target, const char * draft, int rounds, int n_prompt, const char * kv_type) {
    opened_pair pair(place, target, draft, n_prompt + 2 * (rounds + k_warm) * 16, 0, kv_type);
    std::vector<double> plain, whole;
    for (int turn = 0; turn < 3; ++turn) {
        slip_round_result ignored;
        plain.push_back(time_rounds(pair, 0, SLIP_VERIFY_GREEDY, rounds, ignored, 0, n_prompt));
        whole.push_back(time_rounds(pair, pair.info.block - 1, SLIP_VERIFY_GREEDY, rounds, ignored, 0, n_prompt));
    }
    std::printf("{\"device\": \"%s\", \"tokens\": %d, \"plain_ms\": %.4f, \"round_ms\": %.4f}\n", pair.info.device.description, n_prompt, median(plain),
        median(whole));
    return 0;
}

} // namespace

int main(int argc, char ** argv) {
    const std::string what = argc > 6 ? argv[6] : "";
    if (argc < 4 || (what == "at" && argc < 8)) {
        std::fprintf(stderr, "usage: bench-round DEVICE TARGET.gguf DRAFT.gguf [MEAN_LENGTH] [ROUNDS] [texts | speeds [SECONDS] | at TOKENS [CACHE]]\n");
        return 2;
    }
    const double length = argc > 4 ? std::atof(argv[4]) : 6;
    const int    rounds = argc > 5 ? std::atoi(argv[5]) : 40;
    const bool   with_texts = what == "texts";
    const char * place = std::string(argv[1]) == "CPU" ? nullptr : argv[1];

    if (what == "speeds") {
        opened_pair pair(place, argv[2], argv[3], 4096);
        const double most_ms = argc > 7 ? 1e3 * std::atof(argv[7]) : HUGE_VAL;
        const double rate    = rate_of(length, pair.info.block);
        for (std::string line; std::getline(std::cin, line);) {
            double width = 0;
            const double plain   = plain_speed(pair, 8 * rounds, most_ms);
            const double by_rule = governed(pair, pair.info.block, rate, 8 * rounds, most_ms, width);
            std::printf("{\"plain_tokens_per_s\": %.3f, \"governed_tokens_per_s\": %.3f}\n", plain, by_rule);
            std::fflush(stdout);
        }
        return 0;
    }

    if (what == "at") {
        return at_context(place, argv[2], argv[3], rounds, std::atoi(argv[7]), argc > 8 ? argv[8] : nullptr);
    }

    const slip_costs whole_head = opened_pair(place, argv[2], argv[3], 4096, INT32_MAX).costs();
    opened_pair pair(place, argv[2], argv[3], 4096);
    const int block = pair.info.block;

    const double start = now_ms();
    const slip_costs costs = pair.costs();
    const double measured_in = now_ms() - start;

    // In turns, so that a machine that slows down slows all of them.
    slip_round_result plain_result, result, sampled, host;
    std::vector<double> plain, greedy, gpu, cpu, penalised[3];
    std::map<int, std::vector<double>> widths = { { 2, {} }, { 4, {} }, { 8, {} }, { 12, {} } };
    widths.erase(widths.lower_bound(block), widths.end());
    for (int turn = 0; turn < 5; ++turn) {
        plain.push_back(time_rounds(pair, 0, SLIP_VERIFY_GREEDY, rounds, plain_result));
        greedy.push_back(time_rounds(pair, block - 1, SLIP_VERIFY_GREEDY, rounds, result));
        for (auto & [w, times] : widths) {
            slip_round_result ignored;
            times.push_back(time_rounds(pair, w - 1, SLIP_VERIFY_GREEDY, rounds, ignored));
        }
        gpu.push_back(time_rounds(pair, block - 1, SLIP_VERIFY_GPU_SAMPLE, rounds, sampled));
        cpu.push_back(time_rounds(pair, block - 1, SLIP_VERIFY_HOST_SAMPLE, rounds, host));
        for (const slip_verify verify : { SLIP_VERIFY_GREEDY, SLIP_VERIFY_HOST_SAMPLE, SLIP_VERIFY_GPU_SAMPLE }) {
            slip_round_result ignored;
            penalised[verify].push_back(time_rounds(pair, block - 1, verify, rounds, ignored, 1.5f));
        }
    }
    double width = 0;
    const double rate    = rate_of(length, block);
    const double by_rule = governed(pair, block, rate, 400, HUGE_VAL, width);
    int          fixed_width = 1;
    device measured = { pair.info.device.description, true, median(plain), {} };
    for (const auto & [w, times] : widths) {
        measured.rounds.emplace_back(w, median(times));
    }
    measured.rounds.emplace_back(block, median(greedy));
    const double fixed = best_fixed(measured, rate, fixed_width);

    std::printf("{\"device\": \"%s\", \"block\": %d, \"length\": %g, \"plain_ms\": %.4f, \"round_ms\": %.4f, \"gpu_sample_ms\": %.4f, "
                "\"host_sample_ms\": %.4f, \"penalised_ms\": [%.4f, %.4f, %.4f], \"syncs\": %d, \"graphs_run\": %d, \"graphs_rebuilt\": %d, \"bytes_to_host\": %d, "
                "\"host_us\": %lld, \"governed_tokens_per_s\": %.3f, \"governed_width\": %.2f, "
                "\"fixed_tokens_per_s\": %.3f, \"fixed_width\": %d, \"costs_ms\": %.0f, \"costs\": {\"plain\": %.3f, "
                "\"draft\": %.3f, \"draft_one\": %.3f, \"draft_whole_head\": %.3f, \"draft_rows\": %d",
        pair.info.device.description, block, length, median(plain), median(greedy), median(gpu), median(cpu), median(penalised[SLIP_VERIFY_GREEDY]),
        median(penalised[SLIP_VERIFY_GPU_SAMPLE]), median(penalised[SLIP_VERIFY_HOST_SAMPLE]), result.n_syncs, result.n_graphs_run,
        result.n_graphs_rebuilt, result.bytes_to_host, static_cast<long long>(result.host_us), by_rule, width, fixed, fixed_width, measured_in, costs.plain,
        costs.draft, costs.draft_one, whole_head.draft, pair.info.draft_rows);
    for (int w = 2; w <= block; ++w) {
        if (costs.verify[w] > 0) {
            std::printf(", \"verify_%d\": %.3f", w, costs.verify[w]);
        }
    }
    std::printf("}, \"texts\": {");
    if (with_texts) {
        print_texts(pair, measured, block);
    }
    std::printf("}}\n");
    return 0;
}
