// The choice of tokens alone, without a model.

#pragma once

#include "slipstream.h"

#include "ggml-backend.h"

// See slip_choose. Throws SLIP_ERROR_OPTION, SLIP_ERROR_DEVICE, SLIP_ERROR_MEMORY.
void slip_choose_rows(ggml_backend_dev_t device, const slip_sampling & sampling, const slip_past & past, const float * logits,
    int32_t n_vocab, int32_t n_rows, int32_t first_position, int32_t * tokens);
