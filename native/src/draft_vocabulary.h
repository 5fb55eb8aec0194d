// Which tokens a draft chooses among: the drafter's head is half of its bytes, and nearly all of a text comes from few
// of its rows.
//
// The set is a list of places, each with a token. Most of them are fixed: the lowest ids, which in a vocabulary of byte
// pairs are the commonest, and the special tokens. The others begin with the ids behind those and then take what the
// text at hand shows: tokens that were missing, and where several of one script were, its commonest as well. What the
// text has not used for long leaves. What the set lacks costs tokens that would have been accepted; while that is more
// than the rows save, drafts read the whole head.
//
// Nothing of this changes a text: whatever is drafted, the target verifies it.

#pragma once

#include "llama.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

class slip_draft_vocabulary {
public:
    static constexpr int32_t k_tile = 16; // places that change together: see take_changed()

    // The rows that a draft reads of a head of `n_vocab`: `wanted` of them, 0 for as many as pay; n_vocab for the whole
    // head, as where there is little to save.
    static int32_t rows(int32_t n_vocab, int32_t wanted);

    // A set of `rows` tokens, fewer than the vocabulary has.
    slip_draft_vocabulary(const llama_vocab * vocab, int32_t rows);

    const std::vector<llama_token> & tokens() const { return tokens_; } // by place
    bool has(llama_token token) const { return place_of_[token] >= 0; }

    // Takes in what a text is made of.
    void see(const llama_token * tokens, int32_t n);

    // A round in which the target chose these tokens: `n_accepted` of `n_drafted` drafted ones, and one of its own.
    void record(const llama_token * chosen, int32_t n_accepted, int32_t n_drafted);

    // Whether what the set lacks costs more than it saves.
    bool suffers() const { return suffers_; }

    // Places [first, second) that have other tokens since the last call, in whole tiles.
    std::vector<std::pair<int32_t, int32_t>> take_changed();

private:
    void take_in(llama_token token);
    void take_in_script(int32_t script);
    int32_t script_of(llama_token token); // of the first character that is not ASCII's

    const llama_vocab *      vocab_;
    std::vector<llama_token> tokens_;
    std::vector<int32_t>     place_of_; // of each token; -1: it has none
    int32_t                  n_fixed_;  // places that keep their tokens
    int32_t                  next_;     // the place that changes next: downwards, the rarest first
    int64_t                  n_taken_ = 0;
    std::vector<int32_t>     scripts_;  // of each token, once one is asked for
    std::map<int32_t, int32_t> missing_;  // tokens of a script that were missing
    std::map<int32_t, int64_t> taken_at_; // n_taken_ when a script's tokens came in
    std::vector<uint8_t>     used_;       // by place: the text has its token
    std::vector<uint8_t>     changed_;    // by tile
    double                   missed_ = 0; // share of the rounds that the set cuts short, of late
    double                   found_;      // share of what the set lacks that the whole head finds
    bool                     suffers_ = false;
};
