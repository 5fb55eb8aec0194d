// Choosing as part of the target's graph: one token a row, where the logits are.

#pragma once

#include "penalties.h"
#include "slipstream.h"

#include "llama-ext.h"

#include <cstdint>
#include <vector>

// Draws by inverting the cumulative distribution at u(seed, position), a uniform number that
// the host gives for each row: nothing depends on how many tokens were drawn before. The same
// candidates as slip_sampler::choose: top_k, of those top_p, of those min_p, all at temperature
// 1; then the temperature. They are laid out by id, not by probability, so that rounding in two
// close logits cannot exchange them. Of equal logits at the edge of top_p all stay. Greedy takes the first of the largest.
//
// A row that holds NaN or infinity gives LLAMA_TOKEN_NULL where this `watches`, which reads all logits once more: for
// logits that the host does not see.
//
// Penalties: the host tells which tokens count before the first row, and how often for each row, since
// the window moves on with the rows. Those drafted in the pass are counted in the graph, where alone they are known.
class slip_device_sampler {
public:
    static constexpr const char * k_pass = "inp_tokens"; // as llama.cpp calls it

    slip_device_sampler() = default;
    slip_device_sampler(const slip_sampling & options, const slip_penalties & penalties, int32_t n_vocab, bool watches);

    // For a pass with `n_rows` rows, the first of which comes behind `before`. `block`: row i comes also behind the
    // pass's last n_rows - 1 tokens up to the i-th, which the host need not know: the graph has those of the pass in a
    // tensor called k_pass, I32. Else all rows stand at that one place.
    void prepare(const int32_t * before, int32_t n_before, int32_t n_rows, bool block);

    // For the pass that was prepared. This must stay where it is, and as it is, until that has run.
    llama_out_chooser chooser() const;

private:
    // Parts of the graph's one input, F32: where each begins.
    struct layout {
        size_t uniform, bias_ids, biases, ids, counts, mask, size;
        layout(const slip_device_sampler & sampler, int64_t n_rows, int64_t n_block);
    };

    static ggml_tensor * build(const void * user, ggml_context * ctx, ggml_tensor * logits, ggml_tensor ** input);
    static void          set_input(const void * user, ggml_tensor * input, const llama_pos * pos, int32_t n_rows);

    ggml_tensor * penalise(ggml_context * ctx, ggml_tensor * logits, ggml_tensor * input) const;
    ggml_tensor * draw(ggml_context * ctx, ggml_tensor * logits, ggml_tensor * u) const;

    slip_sampling  options_ = {};
    slip_penalties penalties_;
    int32_t        n_vocab_ = 0;
    bool           watches_ = false;
    bool           greedy_  = false;

    // Of the pass that was prepared.
    int32_t              n_rows_ = 0;
    bool                 block_  = false;
    std::vector<int32_t> ids_;    // tokens that count before the first row, each once, filled up with one that does not
    std::vector<float>   counts_; // [ids, rows] how often
    std::vector<int32_t> slots_;  // [n_vocab] place in ids_, or -1
};

// u(seed, position) in (0, 1), a multiple of 2^-24.
float slip_uniform(uint64_t seed, int32_t position);
