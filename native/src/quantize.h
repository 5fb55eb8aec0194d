// Numbers stored as one of ggml's types, and what that did to them.

#pragma once

#include "slipstream.h"

#include <cstdint>

// Bytes of a row, or -1 where there is no such type or a row is no whole number of its blocks.
int64_t slip_row_size(const char * type, int64_t n_per_row);

// Throws SLIP_ERROR_OPTION for a type that cannot be made this way.
void slip_quantize_rows(const char * type, const float * values, int64_t n_rows, int64_t n_per_row, void * out, slip_rounding & rounding);
