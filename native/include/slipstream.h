/*
 * slipstream.h: one target with its DFlash drafter, decoded in rounds.
 *
 * This header is the specification. The library behind it is built into the
 * llama-cpp-python wheel, next to libllama.
 *
 * Rules that hold for every function
 *   - Nothing throws. What can fail returns a slip_status and, on failure, fills the
 *     slip_error given to it (which may be NULL). Messages are UTF-8.
 *   - A struct with a `size` member is sized by the caller: set it to sizeof the
 *     struct. A size the library does not know is SLIP_ERROR_OPTION.
 *   - Pointers may not be NULL unless the text says so. Strings are UTF-8, ended by 0.
 *   - A slip_pair belongs to one thread at a time. slip_cancel alone may be called
 *     from any thread at any time between slip_load and slip_free.
 *   - Pairs do not know of each other, and two threads may use two of them, but for what
 *     llama.cpp has once a process: its backends, and its log. The first call that needs
 *     either (slip_load, slip_estimate_load, slip_vocab_open, slip_device_count, slip_device_get, slip_choose)
 *     starts the backends and takes the log over with llama_log_set, for good, as slip_set_log
 *     does without the backends: lines go where that says, to stderr too while the environment
 *     has SLIPSTREAM_NATIVE_LOG, and the last errors become part of a message. If two pairs
 *     fail at the same time, either message may tell of both.
 *   - Options and what they point to are copied: nothing of them is read after the call.
 *     slip_load_options.progress is called during slip_load alone.
 *   - After SLIP_CANCELLED the pair is valid: it holds the tokens that
 *     slip_position counts, and the next slip_prompt continues from there. A cancelled
 *     slip_prompt has no answer: slip_round is refused until the next one.
 *   - SLIP_ERROR_OPTION and SLIP_ERROR_CONTEXT refuse a call before it does anything: the
 *     pair is as it was. After any other failure it holds no tokens; it stays loaded and
 *     the next slip_prompt starts from nothing.
 *
 * Words: a round is one draft and one verify. The anchor is the last token of the
 * answer so far; the target has not seen it yet. A round drafts tokens behind the
 * anchor, the target verifies anchor and draft in one pass, and the round emits the
 * accepted draft tokens and one token of the target's own, which is the next anchor.
 */
#ifndef SLIPSTREAM_H
#define SLIPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#  if defined(SLIP_BUILD)
#    define SLIP_API __declspec(dllexport)
#  else
#    define SLIP_API __declspec(dllimport)
#  endif
#else
#  define SLIP_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one whenever a struct or a function changes in a way that old callers
 * would misread. A caller refuses a library whose slip_abi() differs. */
#define SLIP_ABI 11

#define SLIP_MAX_BLOCK 64 /* longest block of any drafter, in tokens */

typedef enum slip_status {
    SLIP_OK               = 0,
    SLIP_CANCELLED        = 1, /* slip_cancel was called */
    SLIP_ERROR_OPTION     = 2, /* a value that cannot be used */
    SLIP_ERROR_FILE       = 3, /* a model file is missing, incomplete or foreign */
    SLIP_ERROR_MODEL      = 4, /* an architecture that is not supported */
    SLIP_ERROR_PAIR       = 5, /* the drafter does not belong to the target */
    SLIP_ERROR_DEVICE     = 6, /* no such device, or it failed */
    SLIP_ERROR_MEMORY     = 7, /* out of memory on host or device */
    SLIP_ERROR_CONTEXT    = 8, /* the context is full */
    SLIP_ERROR_INTERNAL   = 9,
    SLIP_ERROR_NUMBERS    = 10 /* the model computes what is no number, or infinity, where a choice was needed */
} slip_status;

typedef struct slip_error {
    slip_status status;
    char        message[512]; /* what is wrong, naming the thing */
    char        remedy[256];  /* what to do about it; may be empty */
} slip_error;

typedef struct slip_pair slip_pair;

SLIP_API int32_t slip_abi(void);

typedef enum slip_log_level {
    SLIP_LOG_INFO    = 1,
    SLIP_LOG_WARNING = 2,
    SLIP_LOG_ERROR   = 3
} slip_log_level;

/* Called with a whole line of llama.cpp, ggml or a backend, without its end; from any thread. */
typedef void (*slip_log)(int32_t level, const char * line);

/* Lines of `least` and above go to `log` from now on, also those of backends that are loaded
 * before any other call here. NULL: nowhere. */
SLIP_API void slip_set_log(slip_log log, int32_t least);

/* --- devices ----------------------------------------------------------------- */

typedef enum slip_device_kind {
    SLIP_DEVICE_CPU        = 0,
    SLIP_DEVICE_GPU        = 1,
    SLIP_DEVICE_INTEGRATED = 2 /* a GPU that shares the machine's memory */
} slip_device_kind;

typedef struct slip_device {
    char     name[64];         /* as ggml calls it: CPU, CUDA0, Vulkan0 */
    char     description[128]; /* what a person calls it */
    int32_t  kind;             /* slip_device_kind */
    uint64_t memory_total;     /* bytes; 0 if the device does not say */
    uint64_t memory_free;      /* both of a graphics card no more than the environment variable SLIPSTREAM_GPU_MEMORY
                                * says in bytes: what is to be left to others is no part of them */
} slip_device;

/* Number of devices that ggml can use; the CPU comes first. */
SLIP_API int32_t     slip_device_count(void);
SLIP_API slip_status slip_device_get(int32_t index, slip_device * device, slip_error * error);

/* --- loading ----------------------------------------------------------------- */

/* Called while weights are read, with a fraction from 0 to 1. Return 0 to stop: the
 * load then returns SLIP_CANCELLED. */
typedef int32_t (*slip_progress)(float fraction, void * user);

typedef struct slip_load_options {
    uint32_t      size;
    const char *  target;     /* path of a qwen35 GGUF; of one in parts, the first */
    const char *  draft;      /* path of its dflash GGUF; NULL for plain decoding only */
    const char *  device;     /* slip_device.name; NULL for the CPU */
    const char *  draft_device; /* of the drafter; NULL for the same. On another one, features and
                                 drafts go through the host: correct, and slower */
    const char *  kv_type;    /* how the target's attention keeps keys and values: f32, f16, bf16, q8_0
                               * or q4_0; NULL for f32 beside weights that are all F32, and f16 else */
    int32_t       n_ctx;      /* context in tokens; 0: as many as fit, at most 32768 and what the target was made for,
                               * and 4096 where not all layers fit on the device */
    int32_t       n_ubatch;   /* micro-batch of prefill in tokens, 8 or more */
    int32_t       n_threads;  /* CPU threads; 0: one for each physical performance core that the affinity
                               * mask and a container's quota leave */
    int32_t       draft_rows; /* tokens that a draft chooses among, as rows of the target's head: 0 for as many as
                               * pay, on a graphics card all; the vocabulary's number or more for all. The set follows
                               * the text, and while it lacks too much of that a draft reads the whole head. No text
                               * depends on it */
    float         least_share; /* of the target's layers, from 0 to 1: where fewer fit on its device, the load is
                               * SLIP_ERROR_MEMORY, before any weight is read */
    slip_progress progress;   /* may be NULL */
    void *        user;
} slip_load_options;

/* Bytes of one memory that a load takes. */
typedef struct slip_memory {
    uint64_t weights; /* of the target */
    uint64_t mapped;  /* of these, what is mapped from the file: what is not read need not be there. Q4_K, Q5_K, Q6_K
                       * and Q8_0 are laid out anew for the CPU, and are not */
    uint64_t context; /* keys and values of the target's attention, its recurrent state and the trace of that */
    uint64_t compute; /* what the target's passes need on the way */
    uint64_t drafter; /* all that is the drafter's */
    uint64_t free;    /* what there was before; 0 if it is not known */
} slip_memory;

typedef struct slip_footprint {
    slip_memory device;       /* of the target's GPU; zeros where it runs on the CPU */
    slip_memory draft_device; /* of the drafter's GPU if that is another one; else zeros */
    slip_memory host;
} slip_footprint;

typedef struct slip_estimate {
    uint32_t size;
    int32_t  n_ctx;           /* the context that it holds for */
    slip_footprint footprint; /* what a load will take, with the longest context in use */
} slip_estimate;

typedef struct slip_info {
    uint32_t size;
    char     name[128];         /* general.name of the target */
    char     quantisation[32];  /* of the target, as llama.cpp names the file type */
    uint64_t target_bytes;      /* weights */
    uint64_t draft_bytes;       /* 0 without a drafter */
    int32_t  n_ctx;             /* tokens that fit */
    int32_t  n_ubatch;
    int32_t  n_vocab;
    int32_t  n_embd;            /* hidden size of the target */
    int32_t  n_embd_draft;      /* hidden size of the drafter; 0 without one */
    int32_t  n_layers;
    int32_t  n_layers_device;   /* layers that live on the device asked for: the last ones, where its memory does not
                                 * hold all; the others are the CPU's */
    int32_t  n_taps;            /* target layers whose output the drafter reads */
    int32_t  block;             /* trained block size of the drafter; 0 without one */
    int32_t  draft_rows;        /* rows of the target's head that a draft reads; n_vocab: all, 0 without a drafter */
    slip_device device;         /* the target's */
    slip_device draft_device;   /* the drafter's; as `device` without one */
    int32_t  bos;               /* the token that begins a text, where the file names one, or -1 */
    int32_t  eos;               /* the token that ends an answer */
    slip_footprint footprint;   /* what the load took; `free` is what was left when it was asked */
    char     repairs[512];      /* what the files lack or the load leaves out, in sentences; empty if nothing */
} slip_info;

/* What a load with these options will take, without any weight being read; n_ctx 0 finds the longest
 * context that fits. Where not all of the target's layers fit on its device beside the drafter, it is for as many as
 * do. SLIP_ERROR_MEMORY where the load would not fit, with the context that would. */
SLIP_API slip_status slip_estimate_load(const slip_load_options * options, slip_estimate * estimate, slip_error * error);

/* Loads a pair. SLIP_ERROR_MEMORY, before any weight is read, where slip_estimate_load says so. On
 * success *pair is owned by the caller, who gives it to slip_free. */
SLIP_API slip_status slip_load(const slip_load_options * options, slip_pair ** pair, slip_error * error);
SLIP_API void        slip_free(slip_pair * pair); /* NULL is allowed. Also after a device failed */
SLIP_API slip_status slip_get_info(const slip_pair * pair, slip_info * info, slip_error * error);

/* The Jinja chat template of the target. NULL if it has none. Lives as long as the pair. */
SLIP_API const char * slip_chat_template(const slip_pair * pair);

/* --- text -------------------------------------------------------------------- */

/* Tokens of `length` bytes of text. Text is text: control tokens that it spells do not come
 * out. Those that are special but no control tokens do: who does not want them gives their
 * spelling in parts. Returns the number of tokens; at most `capacity` are written (call again
 * if it is larger), or a negative number if the text is too long to count. */
SLIP_API int32_t slip_tokenize(const slip_pair * pair, const char * text, int32_t length, int32_t * tokens, int32_t capacity);

/* Tokens that stand for more than their text, ascending: control tokens, the one for what is unknown, and those defined
 * beside the vocabulary. Returns their number; at most `capacity` are written. */
SLIP_API int32_t slip_special_tokens(const slip_pair * pair, int32_t * tokens, int32_t capacity);

/* Bytes of a token, not ended by 0; may be part of a UTF-8 character. Special tokens
 * give no bytes unless `special` is not 0. Returns the number of bytes, or minus that
 * number if `capacity` is too small. */
SLIP_API int32_t slip_token_bytes(const slip_pair * pair, int32_t token, int32_t special, char * bytes, int32_t capacity);

/* 1 if the token ends an answer. */
SLIP_API int32_t slip_is_end(const slip_pair * pair, int32_t token);

/* The vocabulary of a file alone, without its weights. */
typedef struct slip_vocab slip_vocab;

/* On success *vocab is owned by the caller, who gives it to slip_vocab_free. Any thread may use it. */
SLIP_API slip_status slip_vocab_open(const char * path, slip_vocab ** vocab, slip_error * error);
SLIP_API void        slip_vocab_free(slip_vocab * vocab); /* NULL is allowed */

/* As slip_tokenize; with `special` not 0, special tokens that the text spells come out as such. */
SLIP_API int32_t slip_vocab_tokenize(const slip_vocab * vocab, const char * text, int32_t length, int32_t special, int32_t * tokens, int32_t capacity);

/* 1 if the token ends an answer. */
SLIP_API int32_t slip_vocab_is_end(const slip_vocab * vocab, int32_t token);

/* --- decoding ---------------------------------------------------------------- */

typedef enum slip_verify {
    SLIP_VERIFY_GREEDY      = 0, /* the most likely token */
    SLIP_VERIFY_HOST_SAMPLE = 1, /* drawn on the host, see slip_sampling */
    SLIP_VERIFY_GPU_SAMPLE  = 2  /* drawn on the device: only tokens come to the host */
} slip_verify;

typedef struct slip_bias {
    int32_t token;
    float   bias; /* added to its logit */
} slip_bias;

/* Biases and penalties change the logits before anything is chosen, also greedily; see
 * llama_sampler_init_logit_bias and llama_sampler_init_penalties. After the biases, the logit of a
 * token that is c > 0 times among the last `penalty_last_n` before its place (prompt, answer, and
 * in a verify the drafted tokens before it) is divided by `repeat_penalty`, or multiplied where it
 * is not positive; then c * `frequency_penalty` + `presence_penalty` are taken off.
 *
 * The random number for a token depends on nothing but the seed and the token's
 * absolute position, and its penalties on nothing but the tokens before it, so the same seed
 * gives the same text with a drafter, without one, and at any block length. The two ways of
 * sampling draw from the same distribution, but not the same tokens. */
typedef struct slip_sampling {
    uint32_t size;
    int32_t  verify;      /* slip_verify */
    float    temperature; /* 0 is greedy */
    int32_t  top_k;       /* 0: all. Of equals at the edge none stays, but for the first of all */
    float    top_p;       /* 1: all */
    float    min_p;       /* 0: all */
    uint64_t seed;
    float    presence_penalty;  /* 0: none */
    float    frequency_penalty; /* 0: none */
    float    repeat_penalty;    /* above 0; 1: none */
    int32_t  penalty_last_n;    /* 0: no penalties; -1: all tokens count */
    const slip_bias * biases;   /* n_biases of them, may be NULL without any; of one token all are added */
    int32_t  n_biases;
} slip_sampling;

typedef struct slip_prompt_options {
    uint32_t        size;
    const int32_t * tokens;   /* the whole conversation, not only what is new */
    int32_t         n_tokens; /* 1 or more */
    int32_t         n_keep;   /* the next conversation will probably begin with this
                                 many of these tokens: keep the state there. 0: none */
    int32_t         drafting; /* 0: plain decoding, the drafter is not fed */
    slip_sampling   sampling; /* for this answer */
} slip_prompt_options;

typedef struct slip_prompt_result {
    uint32_t size;
    int32_t  n_reused;   /* tokens that the target held already */
    int32_t  token;      /* first token of the answer: the anchor; -1: its logits are not finite */
} slip_prompt_result;

/* Brings the target (and the drafter) to the end of the prompt and chooses the first
 * token. What the pair holds already is reused as far as the recurrent state can be
 * taken back. SLIP_ERROR_CONTEXT if the prompt does not fit; the pair is then as it was. */
SLIP_API slip_status slip_prompt(slip_pair * pair, const slip_prompt_options * options, slip_prompt_result * result, slip_error * error);

typedef enum slip_reason {
    SLIP_REASON_FIXED = 0, /* the caller's width */
    SLIP_REASON_WHOLE = 1, /* the whole block pays */
    SLIP_REASON_PAYS  = 2, /* this width gives most tokens a second */
    SLIP_REASON_PLAIN = 3, /* no width pays, or none may be risked yet: a plain step */
    SLIP_REASON_PROBE = 4  /* none pays; a try whether that has changed */
} slip_reason;

typedef struct slip_round_result {
    uint32_t size;
    int32_t  reason;           /* slip_reason for the width, n_drafted + 1 */
    int32_t  n_drafted;
    int32_t  n_accepted;
    int32_t  n_own;            /* of the drafted tokens, the first ones that are the drafter's */
    int32_t  head_rows;        /* of the target's head that the draft read; 0 where the drafter made none */
    int32_t  drafted[SLIP_MAX_BLOCK];
    int32_t  emitted[SLIP_MAX_BLOCK + 1]; /* n_accepted + 1 tokens; the last is -1 where its logits are not finite: no round may follow */
    int32_t  n_syncs;          /* times the host waited for the device */
    int32_t  n_graphs_run;     /* graphs launched: draft, verify, and feeding apart from both */
    int32_t  n_graphs_rebuilt; /* of those, graphs that were built anew, or that the device captured or evaluated node by node */
    int32_t  bytes_to_host;    /* tokens, and logits where the host samples */
    int64_t  draft_us;         /* -1 on a GPU: it works on while the host prepares the verify, */
    int64_t  verify_us;        /* ... and this is the time of both */
    int64_t  host_us;
} slip_round_result;

#define SLIP_AGREED 2 /* tokens that are no chance, where a drafter and a text both have them */

/* One round that verifies at most `n_draft` drafted tokens (0: a plain step; never more than
 * the trained block has, than a micro-batch holds, than the context has room for). With
 * `governed` not 0 it verifies as many of them as pay, perhaps none.
 * `hint` (NULL: none): `n_hint` tokens that may come. Where the drafter's first SLIP_AGREED are
 * among its first, what it has beyond those that both have is verified in place of the drafter's;
 * the host waits for the draft to see that. A hint that is shorter than the draft is not looked at.
 * SLIP_ERROR_CONTEXT if not even the anchor fits; the pair is then as it was. */
SLIP_API slip_status slip_round(slip_pair * pair, int32_t n_draft, int32_t governed, const int32_t * hint, int32_t n_hint,
    slip_round_result * result, slip_error * error);

/* What rounds cost on this device with this pair, in milliseconds: the governor's ground. */
typedef struct slip_costs {
    uint32_t size;
    float    plain;                      /* a plain step */
    float    draft;                      /* a draft of the whole block... */
    float    draft_one;                  /* ... and of one token only: fewer rows of the head, on a processor of all */
    float    verify[SLIP_MAX_BLOCK + 1]; /* a verify of so many tokens; 0: not measured */
} slip_costs;

/* Measures them, in two seconds at most unless single passes take longer. A width that the
 * context cannot hold is not measured. Forgets all tokens, unless it is cancelled. SLIP_ERROR_OPTION without a drafter,
 * SLIP_ERROR_CONTEXT if the context has not two tokens, SLIP_ERROR_NUMBERS where no token can be chosen. */
SLIP_API slip_status slip_measure_costs(slip_pair * pair, slip_costs * costs, slip_error * error);

/* Gives the governor costs, as slip_measure_costs measured them now or before, in place of what it
 * knows. It refines them by the rounds themselves; without any it begins with nothing but those. */
SLIP_API slip_status slip_set_costs(slip_pair * pair, const slip_costs * costs, slip_error * error);

#define SLIP_ACCEPTANCE_RATES 10

/* What the governor has learned of how drafts are accepted, from all governed rounds. */
typedef struct slip_learned {
    uint32_t size;
    double   common[SLIP_ACCEPTANCE_RATES]; /* how common each of its rates of acceptance was where answers begin: shares of 1 */
    double   hits[SLIP_MAX_BLOCK + 1];      /* of a position, from 1: how often it was accepted of late... */
    double   foreseen[SLIP_MAX_BLOCK + 1];  /* ... and how often that was to be expected */
} slip_learned;

SLIP_API slip_status slip_get_learned(slip_pair * pair, slip_learned * learned, slip_error * error);

/* Gives it what slip_get_learned gave, of this pair on texts of the kind that comes: the next
 * answer begins with that. SLIP_ERROR_OPTION for what cannot have come from there. */
SLIP_API slip_status slip_set_learned(slip_pair * pair, const slip_learned * learned, slip_error * error);

/* Threads that a load takes on the CPU where none are asked for: fast cores that the process may
 * use and its container's quota pays for. */
SLIP_API int32_t slip_default_threads(void);

/* Exact: a row's bits do not depend on the rows beside it, so drafted text is plain text. */
typedef struct slip_exactness {
    uint32_t size;
    int32_t  exact;  /* 1: no width gave other bits than one token at a time */
    int32_t  width;  /* the first one that did; 0 if exact */
    int32_t  widest; /* widths from 2 to this were to be tried */
} slip_exactness;

/* Tries all widths of a verify on a fixed text: as wide as the drafter's block, without one 16
 * tokens. Takes about two passes a width, and forgets all tokens. SLIP_CANCELLED while
 * slip_cancel says so; SLIP_ERROR_CONTEXT if the context has no room for it. */
SLIP_API slip_status slip_probe_exact(slip_pair * pair, slip_exactness * result, slip_error * error);

/* A round with a draft given by the caller instead of the drafter, if there is one: `draft` may
 * be any tokens, the target verifies them like others. Without a drafter at most 15 of them. */
SLIP_API slip_status slip_round_given(slip_pair * pair, const int32_t * draft, int32_t n_draft, slip_round_result * result, slip_error * error);

/* Tokens that the target holds; the anchor is not among them. */
SLIP_API int32_t slip_position(const slip_pair * pair);

/* Forgets all tokens. If the device fails in that, the next call tells. */
SLIP_API void slip_reset(slip_pair * pair);

/* While set to 1, what decodes (prompts, rounds, the measuring of costs, the probe, on the CPU slip_eval too) returns
 * SLIP_CANCELLED as soon as it can: between micro-batches and passes, between draft and verify, on the CPU also inside them. */
SLIP_API void slip_cancel(slip_pair * pair, int32_t cancelled);

/* --- quantising ------------------------------------------------------------------ */

/* What storing numbers in a type did to them. */
typedef struct slip_rounding {
    uint32_t size;
    int64_t  n_infinite; /* numbers that are not finite once stored */
    double   error;      /* sum of the squares of what was lost */
    double   power;      /* sum of the squares of the numbers */
} slip_rounding;

/* Bytes of a row of `n_per_row` numbers stored as ggml's `type`, by its name there ("q4_K"), or -1
 * if there is no such type or a row is no whole number of its blocks. */
SLIP_API int64_t slip_row_bytes(const char * type, int64_t n_per_row);

/* Stores `n_rows` rows of `values` as `type` in `out`, which has room for n_rows * slip_row_bytes:
 * the very bytes of llama.cpp's quantiser without an importance matrix. Any number of threads may
 * do so at the same time. SLIP_ERROR_OPTION for a type that cannot be made this way. */
SLIP_API slip_status slip_quantize(const char * type, const float * values, int64_t n_rows, int64_t n_per_row, void * out, slip_rounding * rounding, slip_error * error);

/* --- inspection -------------------------------------------------------------- */

/* Logits of the target after each of `n_tokens` tokens from an empty state, in passes
 * of `n_rows` tokens: 1 is what plain decoding computes, the block size what a verify
 * computes. `logits` takes n_tokens * n_vocab floats. Forgets all tokens. */
SLIP_API slip_status slip_eval(slip_pair * pair, const int32_t * tokens, int32_t n_tokens, int32_t n_rows, float * logits, slip_error * error);

/* Logits of the target's last pass, row `row` of its outputs (the last prompt token, or
 * anchor and draft of a round): n_vocab floats into `logits`. */
SLIP_API slip_status slip_last_logits(slip_pair * pair, int32_t row, float * logits, slip_error * error);

/* Drafter alone: reads `n_tokens` tokens of context through the target from an empty
 * state, then runs one block behind them with `anchor`. `features` (may be NULL) takes
 * n_tokens * n_taps * n_embd floats, the target's tapped layer outputs side by side;
 * `hidden` takes block * n_embd_draft floats, the drafter's last hidden states after
 * its final norm. Forgets all tokens. */
SLIP_API slip_status slip_eval_draft(slip_pair * pair, const int32_t * tokens, int32_t n_tokens, int32_t anchor, float * features, float * hidden, slip_error * error);

/* Tokens before some rows, for penalties: row i comes behind `before` and, if `block` is not NULL, the
 * first i of it, which has one token less than there are rows. Without `block` all rows stand at one place. */
typedef struct slip_past {
    const int32_t * before;   /* may be NULL if there are none; with `block` there is one */
    int32_t         n_before;
    const int32_t * block;
} slip_past;

/* Chooses a token for each of `n_rows` rows of `n_vocab` logits as a verify would, on the device
 * `device` (NULL: the CPU); row i draws as for position `first_position` + i. For tests of the
 * distribution. -1 for a row that holds NaN or infinity. */
SLIP_API slip_status slip_choose(const char * device, const slip_sampling * sampling, const slip_past * past, const float * logits, int32_t n_vocab, int32_t n_rows, int32_t first_position, int32_t * tokens, slip_error * error);

#ifdef __cplusplus
}
#endif

#endif
