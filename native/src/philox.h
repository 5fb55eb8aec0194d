// Philox4x32-10, a counter-based generator: Salmon et al., "Parallel Random Numbers: As Easy
// as 1, 2, 3", SC 2011. Four words for one counter, no state.

#pragma once

#include <array>
#include <cstdint>

inline std::array<uint32_t, 4> slip_philox(std::array<uint32_t, 4> counter, uint64_t seed) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t(0xD2511F53) * counter[0];
        const uint64_t b = uint64_t(0xCD9E8D57) * counter[2];
        counter = { uint32_t(b >> 32) ^ counter[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ counter[3] ^ k1, uint32_t(a) };
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return counter;
}
