// Which tokens a draft chooses among, with a real vocabulary.
//
//   test-draft-vocabulary VOCAB.gguf            checks the set; a line a check, exit status 1 if one fails
//   test-draft-vocabulary VOCAB.gguf TEXT...    for each file of UTF-8 text: its tokens, and the share of them that is
//                                               among the lowest ids, and in a set that follows the text, from the
//                                               token k_prompt of every k_chat on; a new set for each

#include "draft_vocabulary.h"
#include "errors-only.h"

#include "llama-cpp.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr int32_t k_chat = 2000, k_prompt = 300;

int failed = 0;

void check(bool ok, const char * what) {
    std::printf("%-6s %s\n", ok ? "ok" : "FAILED", what);
    failed += !ok;
}

std::vector<llama_token> tokens_of(const llama_vocab * vocab, const std::string & text) {
    const auto length = static_cast<int32_t>(text.size());
    std::vector<llama_token> tokens(text.size() + 1);
    tokens.resize(std::max(0, llama_tokenize(vocab, text.data(), length, tokens.data(), static_cast<int32_t>(tokens.size()), false, false)));
    return tokens;
}

double share_in(const slip_draft_vocabulary & set, const std::vector<llama_token> & tokens) {
    const auto n = std::count_if(tokens.begin(), tokens.end(), [&](llama_token t) { return set.has(t); });
    return double(n) / double(std::max<size_t>(1, tokens.size()));
}

void see(slip_draft_vocabulary & set, const std::vector<llama_token> & tokens) {
    set.see(tokens.data(), static_cast<int32_t>(tokens.size()));
}

// Every token has its place, and no other one.
bool sound(const slip_draft_vocabulary & set, int32_t n_vocab) {
    std::vector<llama_token> sorted = set.tokens();
    std::sort(sorted.begin(), sorted.end());
    const bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    int64_t n = 0;
    for (llama_token token = 0; token < n_vocab; ++token) {
        n += set.has(token);
    }
    return once && n == int64_t(sorted.size()) && std::all_of(sorted.begin(), sorted.end(), [&](llama_token t) { return set.has(t); });
}

struct script { const char * name, * first, * second; };

// Two passages in a script each, about other things.
const script k_scripts[] = {
    { "Chinese", "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u4e00\u8d77\u53bb\u516c\u56ed\u6563\u6b65\uff0c\u8def\u4e0a\u770b\u5230\u8bb8\u591a\u5b69\u5b50\u5728\u653e\u98ce\u7b5d\u3002",
      "\u8ba1\u7b97\u673a\u7684\u5185\u5b58\u8d8a\u5927\uff0c\u7a0b\u5e8f\u8fd0\u884c\u5f97\u8d8a\u5feb\uff0c\u4f46\u662f\u4ef7\u683c\u4e5f\u4f1a\u66f4\u9ad8\uff0c\u6240\u4ee5\u8981\u6839\u636e\u9700\u8981\u9009\u62e9\u3002" },
    { "Russian", "\u0421\u0435\u0433\u043e\u0434\u043d\u044f \u0445\u043e\u0440\u043e\u0448\u0430\u044f \u043f\u043e\u0433\u043e\u0434\u0430, \u0438 \u043c\u044b \u0432\u043c\u0435\u0441\u0442\u0435 \u0438\u0434\u0451\u043c \u0433\u0443\u043b\u044f\u0442\u044c \u0432 \u043f\u0430\u0440\u043a.",
      "\u0427\u0435\u043c \u0431\u043e\u043b\u044c\u0448\u0435 \u043f\u0430\u043c\u044f\u0442\u044c \u043a\u043e\u043c\u043f\u044c\u044e\u0442\u0435\u0440\u0430, \u0442\u0435\u043c \u0431\u044b\u0441\u0442\u0440\u0435\u0435 \u0440\u0430\u0431\u043e\u0442\u0430\u044e\u0442 \u043f\u0440\u043e\u0433\u0440\u0430\u043c\u043c\u044b." },
    { "Arabic", "\u0627\u0644\u0637\u0642\u0633 \u062c\u0645\u064a\u0644 \u0627\u0644\u064a\u0648\u0645 \u0648\u0646\u062d\u0646 \u0646\u0630\u0647\u0628 \u0645\u0639\u0627 \u0625\u0644\u0649 \u0627\u0644\u062d\u062f\u064a\u0642\u0629.",
      "\u0643\u0644\u0645\u0627 \u0632\u0627\u062f\u062a \u0630\u0627\u0643\u0631\u0629 \u0627\u0644\u062d\u0627\u0633\u0648\u0628 \u0639\u0645\u0644\u062a \u0627\u0644\u0628\u0631\u0627\u0645\u062c \u0628\u0633\u0631\u0639\u0629 \u0623\u0643\u0628\u0631." },
};

void check_set(const llama_vocab * vocab) {
    const int32_t n_vocab = llama_vocab_n_tokens(vocab);
    check(slip_draft_vocabulary::rows(4096, 0) == 4096, "a small vocabulary is read whole");
    check(slip_draft_vocabulary::rows(n_vocab, 0) < n_vocab / 3, "of a large one a draft reads less than a third");
    check(slip_draft_vocabulary::rows(n_vocab, n_vocab + 1) == n_vocab, "no more rows than there are");
    check(slip_draft_vocabulary::rows(n_vocab, 1000) == 1008, "rows are whole tiles");

    const int32_t rows = slip_draft_vocabulary::rows(n_vocab, 0);
    const slip_draft_vocabulary fresh(vocab, rows);
    check(int32_t(fresh.tokens().size()) == rows && sound(fresh, n_vocab), "as many tokens as rows, each once");
    bool special = true;
    for (llama_token token = 0; token < n_vocab; ++token) {
        special = special && (!(llama_vocab_get_attr(vocab, token) & LLAMA_TOKEN_ATTR_CONTROL) || fresh.has(token));
    }
    check(special, "control tokens are in it");

    for (const script & s : k_scripts) {
        slip_draft_vocabulary set(vocab, rows);
        const auto first = tokens_of(vocab, s.first), second = tokens_of(vocab, s.second);
        const double before = share_in(set, second);
        see(set, first);
        const double after = share_in(set, second);
        std::printf("       %s: %.2f of a passage before another one is seen, %.2f behind it\n", s.name, before, after);
        check(share_in(set, first) == 1, "what a text showed is in it");
        check(before < 0.5 && after > 0.9, "behind a passage in a script, another one is in it");
        check(sound(set, n_vocab), "each token once");
    }

    // Whatever comes, the first places keep their tokens, and what changed is told.
    slip_draft_vocabulary set(vocab, 1008);
    std::vector<llama_token> all(n_vocab);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<llama_token> before = set.tokens();
    set.take_changed();
    see(set, { n_vocab / 2, n_vocab / 2 + 1 });
    const auto changed = set.take_changed();
    std::vector<llama_token> told = before;
    for (const auto & [from, to] : changed) {
        std::copy(set.tokens().begin() + from, set.tokens().begin() + to, told.begin() + from);
    }
    check(changed.size() == 1 && changed[0].second - changed[0].first == slip_draft_vocabulary::k_tile, "two tokens change a tile");
    check(told == set.tokens() && set.take_changed().empty(), "changes are told, once");
    see(set, all);
    check(sound(set, n_vocab), "each token once behind all of them");
    check(std::equal(before.begin(), before.begin() + 400, set.tokens().begin()), "the lowest ids stay");

    // Rounds of 15 drafted tokens, of which 5 hold.
    const auto round = [&](slip_draft_vocabulary & of, llama_token at_end, llama_token in_between) {
        const std::vector<llama_token> chosen = { 1, 2, in_between, 3, 4, at_end };
        of.record(chosen.data(), 5, 15);
    };
    const auto suffered = [&](slip_draft_vocabulary & of, int n, auto && next) { // rounds of the next n
        int count = 0;
        for (int i = 0; i < n; ++i) {
            next(of, i);
            count += of.suffers();
        }
        return count;
    };
    slip_draft_vocabulary judged(vocab, 1008);
    llama_token rare = n_vocab / 2;
    const auto cut_short = [&](slip_draft_vocabulary & of, int) { round(of, rare++, 2); };
    const int whole = suffered(judged, 30, cut_short);
    check(whole > 10 && whole < 28 && judged.suffers(), "where rounds end by tokens outside, the whole head is read");
    const auto found = [&](slip_draft_vocabulary & of, int i) { round(of, 5, i % 3 == 0 ? rare++ : 2); };
    check(suffered(judged, 100, found) == 100, "while it finds such tokens it stays");
    suffered(judged, 40, cut_short);
    check(suffered(judged, 100, cut_short) < 30, "where it does not find them either it goes");
    check(suffered(judged, 100, [&](slip_draft_vocabulary & of, int) { round(of, 5, 2); }) < 20, "and where there are none");
    slip_draft_vocabulary copied(vocab, 1008);
    suffered(copied, 30, cut_short);
    check(suffered(copied, 100, [&](slip_draft_vocabulary & of, int) {
        const std::vector<llama_token> chosen = { 1, 2, rare, rare + 1, 5 };
        rare += 2;
        of.record(chosen.data(), 4, 2);
    }) < 30, "what a copy found is not its merit");
    slip_draft_vocabulary poor(vocab, 1008);
    check(suffered(poor, 400, [&](slip_draft_vocabulary & of, int i) {
        const llama_token chosen = i % 4 == 0 ? rare++ : 5;
        of.record(&chosen, 0, 15);
    }) < 40, "nor is it read for long where drafts hold nothing anyway");
}

void show_coverage(const llama_vocab * vocab, const char * path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text { std::istreambuf_iterator<char>(file), {} };
    const std::vector<llama_token> tokens = tokens_of(vocab, text);
    const int32_t rows = slip_draft_vocabulary::rows(llama_vocab_n_tokens(vocab), 0), n = static_cast<int32_t>(tokens.size());
    int64_t low = 0, in = 0, of = 0;
    for (int32_t begin = 0; begin + k_prompt < n; begin += k_chat) {
        slip_draft_vocabulary set(vocab, rows);
        set.see(tokens.data() + begin, k_prompt);
        for (int32_t i = begin + k_prompt; i < std::min(n, begin + k_chat); ++i) {
            low += tokens[i] < rows;
            in  += set.has(tokens[i]);
            of  += 1;
            set.see(&tokens[i], 1);
        }
    }
    std::printf("%8d tokens, %.3f among the lowest %d ids, %.3f in the set: %s\n", n, double(low) / double(std::max<int64_t>(1, of)), rows,
        double(in) / double(std::max<int64_t>(1, of)), path);
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: test-draft-vocabulary VOCAB.gguf [TEXT...]\n");
        return 2;
    }
    log_errors_only();
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    const llama_model_ptr model(llama_model_load_from_file(argv[1], params));
    if (!model) {
        std::fprintf(stderr, "`%s` cannot be read\n", argv[1]);
        return 1;
    }
    const llama_vocab * vocab = llama_model_get_vocab(model.get());
    for (int i = 2; i < argc; ++i) {
        show_coverage(vocab, argv[i]);
    }
    if (argc == 2) {
        check_set(vocab);
        std::printf("%s\n", failed ? "FAILED" : "all passed");
    }
    return failed ? 1 : 0;
}
