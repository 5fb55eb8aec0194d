// Whether logits are something to choose from: there is a largest one, and none of them is NaN or above all numbers.

#pragma once

#include <cstdint>

bool slip_comparable(const float * logits, int32_t n);
