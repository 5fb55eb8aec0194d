#include "quantize.h"

#include "failure.h"

#include "ggml.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

static ggml_type type_named(const char * name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const ggml_type type  = static_cast<ggml_type>(i);
        const char *    known = ggml_type_name(type); // NULL for types that were taken away
        if (known && ggml_blck_size(type) > 0 && std::strcmp(known, name) == 0) {
            return type;
        }
    }
    return GGML_TYPE_COUNT;
}

int64_t slip_row_size(const char * name, int64_t n_per_row) {
    const ggml_type type = type_named(name);
    if (type == GGML_TYPE_COUNT || n_per_row < 1 || n_per_row % ggml_blck_size(type) != 0) {
        return -1;
    }
    return static_cast<int64_t>(ggml_row_size(type, n_per_row));
}

// Others end the process on numbers that do not fit them, or search for them without end.
static bool slip_quantizes(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_0: case GGML_TYPE_Q4_1: case GGML_TYPE_Q5_0: case GGML_TYPE_Q5_1: case GGML_TYPE_Q8_0:
        case GGML_TYPE_Q2_K: case GGML_TYPE_Q3_K: case GGML_TYPE_Q4_K: case GGML_TYPE_Q5_K: case GGML_TYPE_Q6_K:
            return true;
        default:
            return false;
    }
}

void slip_quantize_rows(const char * name, const float * values, int64_t n_rows, int64_t n_per_row, void * out, slip_rounding & rounding) {
    const int64_t row_size = slip_row_size(name, n_per_row);
    const ggml_type type   = type_named(name);
    const auto * traits    = row_size > 0 ? ggml_get_type_traits(type) : nullptr;
    if (!traits || !slip_quantizes(type)) {
        throw slip_failure(SLIP_ERROR_OPTION,
            std::string("Rows of ") + std::to_string(n_per_row) + " numbers cannot be stored as `" + name + "`.");
    }

    rounding = { sizeof(rounding), 0, 0.0, 0.0 };
    std::vector<float> stored(static_cast<size_t>(n_per_row));
    for (int64_t i = 0; i < n_rows; ++i) {
        const float * row   = values + i * n_per_row;
        char *        place = static_cast<char *>(out) + i * row_size;
        ggml_quantize_chunk(type, row, place, 0, 1, n_per_row, nullptr);
        traits->to_float(place, stored.data(), n_per_row);

        // Short sums in float are exact enough, and let the compiler use its lanes.
        constexpr int64_t k_lanes = 8, k_short = 1024;
        for (int64_t from = 0; from < n_per_row; from += k_short) {
            const int64_t to = std::min(from + k_short, n_per_row);
            float error[k_lanes] = {}, power[k_lanes] = {};
            for (int64_t j = from; j < to; ++j) { // a block has 32 numbers or more
                const float lost = stored[j] - row[j];
                error[j % k_lanes] += lost * lost;
                power[j % k_lanes] += row[j] * row[j];
            }
            double lost = 0.0;
            for (int k = 0; k < k_lanes; ++k) {
                lost           += error[k];
                rounding.power += power[k];
            }
            rounding.error += lost;
            if (!std::isfinite(lost)) { // rare: count them one by one
                rounding.n_infinite += std::count_if(stored.begin() + from, stored.begin() + to, [](float x) { return !std::isfinite(x); });
            }
        }
    }
}
