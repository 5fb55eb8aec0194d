// A pair through slipstream.h, for programs that end at the first failure.

#pragma once

#include "slipstream.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

struct opened_pair {
    slip_pair * pair = nullptr;
    slip_info   info = {};

    // `device`: nullptr for the CPU; `draft_rows` and `kv_type` as in slip_load_options
    opened_pair(const char * device, const char * target, const char * draft, int n_ctx, int draft_rows = 0, const char * kv_type = nullptr) {
        slip_load_options options = {};
        options.size     = sizeof(options);
        options.device   = device;
        options.target   = target;
        options.draft    = draft;
        options.n_ctx    = n_ctx;
        options.n_ubatch = 512;
        options.draft_rows = draft_rows;
        options.kv_type  = kv_type;
        check(slip_load(&options, &pair, &error_));
        info.size = sizeof(info);
        check(slip_get_info(pair, &info, &error_));
    }
    opened_pair(const opened_pair &) = delete;
    ~opened_pair() { slip_free(pair); }

    // Some tokens, from a cold state.
    void read_prompt(int n_tokens, bool drafting, slip_verify verify, float presence = 0) {
        check(try_prompt(n_tokens, drafting, verify, presence));
    }
    slip_status try_prompt(int n_tokens, bool drafting, slip_verify verify, float presence = 0) {
        std::vector<int32_t> tokens(n_tokens);
        std::iota(tokens.begin(), tokens.end(), 100);
        slip_prompt_options options = {};
        options.size     = sizeof(options);
        options.tokens   = tokens.data();
        options.n_tokens = n_tokens;
        options.drafting = drafting;
        options.sampling = { sizeof(slip_sampling), verify, 0.7f, 20, 0.8f, 0.0f, 1, presence, 0.0f, 1.0f, 64, nullptr, 0 };
        slip_prompt_result result = {};
        result.size = sizeof(result);
        slip_reset(pair);
        return slip_prompt(pair, &options, &result, &error_);
    }
    slip_round_result round(int n_draft) {
        slip_round_result result;
        check(try_round(n_draft, result));
        return result;
    }
    slip_status try_round(int n_draft, slip_round_result & result) {
        result = {};
        result.size = sizeof(result);
        return slip_round(pair, n_draft, /*governed*/ 0, nullptr, 0, &result, &error_);
    }
    slip_costs costs() {
        slip_costs result = {};
        result.size = sizeof(result);
        check(slip_measure_costs(pair, &result, &error_));
        return result;
    }

private:
    slip_error error_ = {};

    void check(slip_status status) const {
        if (status != SLIP_OK) {
            std::fprintf(stderr, "%s %s\n", error_.message, error_.remedy);
            std::exit(1);
        }
    }
};
