// The C boundary: sizes checked, exceptions turned into a slip_error, nothing else.

#include "slipstream.h"

#include "alloc_watch.h"
#include "assertions.h"
#include "choose.h"
#include "cores.h"
#include "cpu_variant.h"
#include "devices.h"
#include "failure.h"
#include "log.h"
#include "pair.h"
#include "quantize.h"
#include "text.h"
#include "vocabulary.h"

#include "llama.h"

#include <mutex>
#include <new>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace {

slip_status fail(slip_error * error, slip_status status, const char * message, const char * remedy) {
    if (error) {
        error->status = status;
        slip_copy_text(error->message, message);
        slip_copy_text(error->remedy, remedy);
    }
    return status;
}

template <typename F> slip_status guarded(slip_error * error, F && body) {
    const slip_alloc_watch watch;
    try {
        body();
        return SLIP_OK;
    } catch (const slip_failure & failure) {
        return fail(error, failure.status, failure.what(), failure.remedy.c_str());
    } catch (const std::exception & exception) {
        if (watch.failed() || dynamic_cast<const std::bad_alloc *>(&exception)) {
            return fail(error, SLIP_ERROR_MEMORY, "There is not enough memory.", "Choose a smaller context or model.");
        }
        return fail(error, SLIP_ERROR_INTERNAL, exception.what(), "");
    } catch (...) {
        return fail(error, SLIP_ERROR_INTERNAL, "Something failed that does not say what it is.", "");
    }
}

// What fails in the middle of a pass leaves the pair anywhere: it starts from nothing. A device that failed may fail in
// that as well; then the next call says so.
template <typename F> slip_status decoding(slip_pair * pair, slip_error * error, F && body) {
    const slip_status status = guarded(error, body);
    if (status == SLIP_ERROR_DEVICE || status == SLIP_ERROR_MEMORY || status == SLIP_ERROR_INTERNAL || status == SLIP_ERROR_NUMBERS) {
        guarded(nullptr, [&] { pair->reset(); });
    }
    return status;
}

template <typename T> void check_size(const T & value, const char * name) {
    if (value.size != sizeof(T)) {
        throw slip_failure(SLIP_ERROR_OPTION, std::string("`") + name + "` has a size of another version of this library.");
    }
}

void start_backends() {
    static std::once_flag once;
    std::call_once(once, [] {
        slip_log_install();
        slip_load_cpu();
        llama_backend_init();
    });
}

int32_t tokenized(const llama_vocab * vocab, const char * text, int32_t length, bool special, int32_t * tokens, int32_t capacity) {
    int32_t n = INT32_MIN;
    guarded(nullptr, [&] { n = llama_tokenize(vocab, text, length, tokens, capacity, /*add_special*/ false, special); });
    return n != INT32_MIN && n < 0 ? -n : n;
}

bool ends(const llama_vocab * vocab, int32_t token) {
    return token >= 0 && token < llama_vocab_n_tokens(vocab) && llama_vocab_is_eog(vocab, token);
}

} // namespace

int32_t slip_abi(void) {
    return SLIP_ABI;
}

void slip_set_log(slip_log log, int32_t least) {
    guarded(nullptr, [&] { slip_log_to(log, least); });
}

int32_t slip_device_count(void) {
    int32_t count = 0;
    guarded(nullptr, [&] {
        start_backends();
        count = static_cast<int32_t>(slip_devices().size());
    });
    return count;
}

slip_status slip_device_get(int32_t index, slip_device * device, slip_error * error) {
    return guarded(error, [&] {
        start_backends();
        const auto devices = slip_devices();
        if (index < 0 || index >= static_cast<int32_t>(devices.size())) {
            throw slip_failure(SLIP_ERROR_OPTION, "There is no device of that number.");
        }
        *device = slip_device_describe(devices[index]);
    });
}

slip_status slip_estimate_load(const slip_load_options * options, slip_estimate * estimate, slip_error * error) {
    return guarded(error, [&] {
        check_size(*options, "options");
        check_size(*estimate, "estimate");
        start_backends();
        const slip_assertions throwing;
        *estimate = slip_estimate_models(*options);
    });
}

slip_status slip_load(const slip_load_options * options, slip_pair ** pair, slip_error * error) {
    *pair = nullptr;
    return guarded(error, [&] {
        check_size(*options, "options");
        start_backends();
        const slip_assertions throwing;
        *pair = new slip_pair(*options);
    });
}

void slip_free(slip_pair * pair) {
    guarded(nullptr, [&] { delete pair; });
#if defined(__GLIBC__)
    malloc_trim(0); // or the allocator keeps what lies below its last block
#endif
}

slip_status slip_get_info(const slip_pair * pair, slip_info * info, slip_error * error) {
    return guarded(error, [&] {
        check_size(*info, "info");
        *info = pair->info();
    });
}

const char * slip_chat_template(const slip_pair * pair) {
    const char * found = nullptr;
    guarded(nullptr, [&] { found = pair->chat_template(); });
    return found;
}

int32_t slip_tokenize(const slip_pair * pair, const char * text, int32_t length, int32_t * tokens, int32_t capacity) {
    return tokenized(pair->vocab(), text, length, /*special*/ false, tokens, capacity);
}

int32_t slip_special_tokens(const slip_pair * pair, int32_t * tokens, int32_t capacity) {
    constexpr int32_t k_special = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED | LLAMA_TOKEN_ATTR_UNKNOWN;
    int32_t n = 0;
    for (llama_token token = 0; token < llama_vocab_n_tokens(pair->vocab()); ++token) {
        if (llama_vocab_get_attr(pair->vocab(), token) & k_special) {
            if (n < capacity) {
                tokens[n] = token;
            }
            ++n;
        }
    }
    return n;
}

int32_t slip_token_bytes(const slip_pair * pair, int32_t token, int32_t special, char * bytes, int32_t capacity) {
    int32_t n = 0;
    guarded(nullptr, [&] {
        const bool known = token >= 0 && token < llama_vocab_n_tokens(pair->vocab());
        n = known ? llama_token_to_piece(pair->vocab(), token, bytes, capacity, /*lstrip*/ 0, special != 0) : 0;
    });
    return n;
}

int32_t slip_is_end(const slip_pair * pair, int32_t token) {
    return ends(pair->vocab(), token);
}

slip_status slip_vocab_open(const char * path, slip_vocab ** vocab, slip_error * error) {
    *vocab = nullptr;
    return guarded(error, [&] {
        start_backends();
        const slip_assertions throwing;
        *vocab = new slip_vocab(path);
    });
}

void slip_vocab_free(slip_vocab * vocab) {
    guarded(nullptr, [&] { delete vocab; });
}

int32_t slip_vocab_tokenize(const slip_vocab * vocab, const char * text, int32_t length, int32_t special, int32_t * tokens, int32_t capacity) {
    return tokenized(vocab->vocab(), text, length, special != 0, tokens, capacity);
}

int32_t slip_vocab_is_end(const slip_vocab * vocab, int32_t token) {
    return ends(vocab->vocab(), token);
}

slip_status slip_prompt(slip_pair * pair, const slip_prompt_options * options, slip_prompt_result * result, slip_error * error) {
    return decoding(pair, error, [&] {
        check_size(*options, "options");
        check_size(options->sampling, "sampling");
        check_size(*result, "result");
        *result = pair->prompt(*options);
    });
}

slip_status slip_round(slip_pair * pair, int32_t n_draft, int32_t governed, const int32_t * hint, int32_t n_hint,
        slip_round_result * result, slip_error * error) {
    return decoding(pair, error, [&] {
        check_size(*result, "result");
        const slip_hint hinted = { hint, hint ? n_hint : 0 };
        *result = governed ? pair->governed_round(n_draft, hinted) : pair->round(n_draft, hinted);
    });
}

slip_status slip_measure_costs(slip_pair * pair, slip_costs * costs, slip_error * error) {
    return decoding(pair, error, [&] {
        check_size(*costs, "costs");
        *costs = pair->measure_costs();
    });
}

slip_status slip_set_costs(slip_pair * pair, const slip_costs * costs, slip_error * error) {
    return guarded(error, [&] {
        check_size(*costs, "costs");
        pair->set_costs(*costs);
    });
}

slip_status slip_get_learned(slip_pair * pair, slip_learned * learned, slip_error * error) {
    return guarded(error, [&] {
        check_size(*learned, "learned");
        *learned = pair->learned();
    });
}

slip_status slip_set_learned(slip_pair * pair, const slip_learned * learned, slip_error * error) {
    return guarded(error, [&] {
        check_size(*learned, "learned");
        pair->set_learned(*learned);
    });
}

int32_t slip_default_threads(void) {
    return slip_cpu_cores();
}

slip_status slip_probe_exact(slip_pair * pair, slip_exactness * result, slip_error * error) {
    return decoding(pair, error, [&] {
        check_size(*result, "result");
        *result = pair->probe_exact();
    });
}

slip_status slip_round_given(slip_pair * pair, const int32_t * draft, int32_t n_draft, slip_round_result * result, slip_error * error) {
    return decoding(pair, error, [&] {
        check_size(*result, "result");
        *result = pair->given_round(n_draft, draft);
    });
}

int32_t slip_position(const slip_pair * pair) {
    return pair->position();
}

void slip_reset(slip_pair * pair) {
    guarded(nullptr, [&] { pair->reset(); });
}

void slip_cancel(slip_pair * pair, int32_t cancelled) {
    pair->cancel(cancelled != 0);
}

slip_status slip_eval(slip_pair * pair, const int32_t * tokens, int32_t n_tokens, int32_t n_rows, float * logits, slip_error * error) {
    return decoding(pair, error, [&] { pair->eval(tokens, n_tokens, n_rows, logits); });
}

slip_status slip_last_logits(slip_pair * pair, int32_t row, float * logits, slip_error * error) {
    return guarded(error, [&] { pair->last_logits(row, logits); });
}

slip_status slip_eval_draft(
        slip_pair * pair, const int32_t * tokens, int32_t n_tokens, int32_t anchor, float * features, float * hidden, slip_error * error) {
    return decoding(pair, error, [&] { pair->eval_draft(tokens, n_tokens, anchor, features, hidden); });
}

slip_status slip_choose(const char * device, const slip_sampling * sampling, const slip_past * past, const float * logits, int32_t n_vocab,
        int32_t n_rows, int32_t first_position, int32_t * tokens, slip_error * error) {
    return guarded(error, [&] {
        check_size(*sampling, "sampling");
        start_backends();
        slip_choose_rows(slip_device_find(device), *sampling, *past, logits, n_vocab, n_rows, first_position, tokens);
    });
}

int64_t slip_row_bytes(const char * type, int64_t n_per_row) {
    int64_t bytes = -1;
    guarded(nullptr, [&] { bytes = slip_row_size(type, n_per_row); });
    return bytes;
}

slip_status slip_quantize(
        const char * type, const float * values, int64_t n_rows, int64_t n_per_row, void * out, slip_rounding * rounding, slip_error * error) {
    return guarded(error, [&] {
        check_size(*rounding, "rounding");
        slip_quantize_rows(type, values, n_rows, n_per_row, out, *rounding);
    });
}
