#include "draft_vocabulary.h"

#include <algorithm>

namespace {

// By what native/README.md, "Draft vocabulary", counts in texts of several languages.
constexpr int32_t k_rows    = 40960;
constexpr double  k_changes = 0.4; // share of the places that take in what a text shows
constexpr int32_t k_least   = 64;  // rows

constexpr int32_t k_missing = 4; // tokens of a script whose others are then expected too

// A token that is missing, and would have been found, ends a round that would have gone on by about half of its tokens;
// a tenth of a round is what the rows save, more on a processor and less on a graphics card.
constexpr double k_rounds = 32;                     // that count
constexpr double k_most = 1.0 / 8, k_back = 1.0 / 16; // share of them from which on, and below which no more, it suffers

constexpr double k_found   = 0.5; // how often the whole head finds a token that is missing, before any of that was seen
constexpr double k_tokens  = 8;   // such tokens that count
constexpr double k_forgets = 512; // missing tokens after which it may be otherwise

constexpr int32_t k_no_script = -1;

// Where scripts begin and end, but for those with a block of 128 code points of their own, which are known by that.
struct range { uint32_t first, last; int32_t script; };
constexpr range k_scripts[] = {
    { 0x00C0, 0x024F, 1 }, { 0x1E00, 0x1EFF, 1 },                        // Latin beyond ASCII
    { 0x0400, 0x052F, 2 },                                               // Cyrillic
    { 0x0600, 0x077F, 3 },                                               // Arabic
    { 0x3040, 0x30FF, 4 },                                               // Kana
    { 0x2E80, 0x303F, 5 }, { 0x3100, 0x9FFF, 5 }, { 0xFF00, 0xFF60, 5 }, // Han, with what stands between
    { 0x1100, 0x11FF, 6 }, { 0xAC00, 0xD7AF, 6 },                        // Hangul
};
constexpr uint32_t k_blocks_first = 0x0250, k_blocks_last = 0x1FFF; // of those

// The first character beyond ASCII of UTF-8 that may begin or end in the middle of one; 0 if there is none.
uint32_t first_foreign(const char * text, int32_t length) {
    for (int32_t i = 0; i < length; ++i) {
        const auto lead = static_cast<uint8_t>(text[i]);
        const int32_t n = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0; // bytes that follow
        if (n > 0 && i + n < length) {
            uint32_t code = lead & (0x3F >> n);
            for (int32_t k = 1; k <= n; ++k) {
                code = code << 6 | (static_cast<uint8_t>(text[i + k]) & 0x3F);
            }
            return code;
        }
    }
    return 0;
}

int32_t script(const llama_vocab * vocab, llama_token token) {
    char text[64];
    const int32_t n = llama_token_to_piece(vocab, token, text, sizeof(text), /*lstrip*/ 0, /*special*/ false);
    const uint32_t code = first_foreign(text, n);
    const auto found = std::find_if(std::begin(k_scripts), std::end(k_scripts), [&](const range & r) { return r.first <= code && code <= r.last; });
    if (found != std::end(k_scripts)) {
        return found->script;
    }
    return k_blocks_first <= code && code <= k_blocks_last ? static_cast<int32_t>(0x1000 + code / 128) : k_no_script;
}

} // namespace

int32_t slip_draft_vocabulary::rows(int32_t n_vocab, int32_t wanted) {
    if (wanted == 0) {
        return n_vocab >= 2 * k_rows ? k_rows : n_vocab;
    }
    const int64_t tiles = (int64_t(std::max(wanted, k_least)) + k_tile - 1) / k_tile;
    return static_cast<int32_t>(std::min<int64_t>(n_vocab, tiles * k_tile));
}

slip_draft_vocabulary::slip_draft_vocabulary(const llama_vocab * vocab, int32_t rows) :
    vocab_(vocab), place_of_(llama_vocab_n_tokens(vocab), -1), n_fixed_(rows - static_cast<int32_t>(k_changes * rows)), next_(rows - 1),
    used_(rows, 0), changed_((rows + k_tile - 1) / k_tile, 0), found_(k_found) {
    const int32_t n_vocab = llama_vocab_n_tokens(vocab);
    std::vector<llama_token> special;
    for (llama_token token = n_vocab - 1; token >= 0; --token) {
        if (llama_vocab_get_attr(vocab, token) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED)) {
            special.push_back(token);
        }
    }
    special.resize(std::min<size_t>(special.size(), n_fixed_ / 2));
    for (const llama_token token : special) {
        place_of_[token] = 0;
    }
    // By id, so that of equal logits among these the first is the whole head's first.
    const auto lowest = [&](llama_token & from, int32_t until) {
        for (; from < n_vocab && static_cast<int32_t>(tokens_.size()) < until; ++from) {
            if (place_of_[from] < 0) {
                tokens_.push_back(from);
            }
        }
    };
    llama_token token = 0;
    lowest(token, n_fixed_ - static_cast<int32_t>(special.size()));
    tokens_.insert(tokens_.end(), special.rbegin(), special.rend());
    lowest(token, rows);
    for (size_t place = 0; place < tokens_.size(); ++place) {
        place_of_[tokens_[place]] = static_cast<int32_t>(place);
    }
}

// --- what a text shows -------------------------------------------------------

void slip_draft_vocabulary::see(const llama_token * tokens, int32_t n) {
    for (int32_t i = 0; i < n; ++i) {
        if (tokens[i] < 0) {
            continue;
        }
        if (has(tokens[i])) {
            used_[place_of_[tokens[i]]] = 1;
            continue;
        }
        take_in(tokens[i]);
        used_[place_of_[tokens[i]]] = 1;
        const int32_t script = script_of(tokens[i]);
        if (script != k_no_script && ++missing_[script] >= k_missing) {
            missing_[script] = 0;
            take_in_script(script);
        }
    }
}

// In place of the next one that the text has not used since it was passed over.
void slip_draft_vocabulary::take_in(llama_token token) {
    const auto step = [&] { next_ = next_ > n_fixed_ ? next_ - 1 : static_cast<int32_t>(tokens_.size()) - 1; };
    for (; used_[next_]; step()) {
        used_[next_] = 0;
    }
    place_of_[tokens_[next_]] = -1;
    tokens_[next_]   = token;
    place_of_[token] = next_;
    changed_[next_ / k_tile] = 1;
    step();
    ++n_taken_;
}

// The lowest ids of a script into half of the places that change; not again while they are there.
void slip_draft_vocabulary::take_in_script(int32_t script) {
    const int32_t half  = (static_cast<int32_t>(tokens_.size()) - n_fixed_) / 2;
    const auto    found = taken_at_.find(script);
    if (found != taken_at_.end() && n_taken_ - found->second < half) {
        return;
    }
    int32_t n = 0;
    for (llama_token token = 0; token < llama_vocab_n_tokens(vocab_) && n < half; ++token) {
        if (!has(token) && script_of(token) == script) {
            take_in(token);
            ++n;
        }
    }
    taken_at_[script] = n_taken_;
}

int32_t slip_draft_vocabulary::script_of(llama_token token) {
    if (scripts_.empty()) {
        scripts_.resize(place_of_.size());
        for (size_t i = 0; i < scripts_.size(); ++i) {
            scripts_[i] = script(vocab_, static_cast<llama_token>(i));
        }
    }
    return scripts_[token];
}

// --- what it costs -----------------------------------------------------------

void slip_draft_vocabulary::record(const llama_token * chosen, int32_t n_accepted, int32_t n_drafted) {
    if (n_drafted > 0) {
        const auto lacks = [&](llama_token token) { return token >= 0 && !has(token); };
        const bool lacked = n_accepted < n_drafted && lacks(chosen[n_accepted]);
        double missed = 0;
        if (suffers_) {
            // The whole head drafted, and shows what it is worth.
            // What it drafted itself: behind that, accepted tokens are those of a text.
            const auto found = std::count_if(chosen, chosen + std::min(n_accepted, n_drafted), lacks);
            missed = found > 0;
            for (int64_t i = 0; i < found; ++i) {
                found_ += (1 - found_) / k_tokens;
            }
            found_ -= lacked ? found_ / k_tokens : 0;
        } else if (lacked) {
            missed = found_;
            found_ += (k_found - found_) / k_forgets;
        }
        missed_ += (missed - missed_) / k_rounds;
        suffers_ = missed_ > (suffers_ ? k_back : k_most);
    }
    see(chosen, n_accepted + 1);
}

std::vector<std::pair<int32_t, int32_t>> slip_draft_vocabulary::take_changed() {
    std::vector<std::pair<int32_t, int32_t>> out;
    const int32_t rows = static_cast<int32_t>(tokens_.size());
    for (int32_t tile = 0; tile < static_cast<int32_t>(changed_.size()); ++tile) {
        if (!changed_[tile]) {
            continue;
        }
        changed_[tile] = 0;
        const int32_t first = tile * k_tile, last = std::min(rows, first + k_tile);
        if (!out.empty() && out.back().second == first) {
            out.back().second = last;
        } else {
            out.emplace_back(first, last);
        }
    }
    return out;
}
