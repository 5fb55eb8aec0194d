// Sampling as part of the target's graph: one token a row, drawn where the logits are.

#pragma once

#include "slipstream.h"

#include "llama-ext.h"

// Draws by inverting the cumulative distribution at u(seed, position), a uniform number that
// the host gives for each row: nothing depends on how many tokens were drawn before. The same
// candidates as slip_sampler::choose: top_k, of those top_p, of those min_p, all at temperature
// 1; then the temperature. They are laid out by id, not by probability, so that rounding in two
// close logits cannot exchange them. Of equal logits at the edge of top_p all stay. `options` must outlive the chooser's use and not be greedy.
llama_out_chooser slip_device_chooser(const slip_sampling * options);

// u(seed, position) in (0, 1), a multiple of 2^-24.
float slip_uniform(uint64_t seed, int32_t position);
