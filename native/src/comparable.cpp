#include "comparable.h"

#include <cstring>

// An integer loop, which a compiler makes lanes of.
bool slip_comparable(const float * logits, int32_t n) {
    constexpr uint32_t k_infinity = 0x7f800000, k_minus_infinity = 0xff800000;
    uint32_t bad = 0, any = 0;
    for (int32_t i = 0; i < n; ++i) {
        uint32_t bits;
        std::memcpy(&bits, logits + i, sizeof(bits));
        bad |= (bits & k_infinity) == k_infinity && bits != k_minus_infinity;
        any |= bits != k_minus_infinity;
    }
    return any && !bad;
}
