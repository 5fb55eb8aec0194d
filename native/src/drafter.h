// The drafter: a small transformer of fixed shape that reads the target's layer outputs and
// proposes the block behind them.
//
// Features (the outputs of the tapped target layers) of accepted positions are queued in a
// buffer on the device. One graph a round then turns the queued features into keys and values
// of the drafter's cache, runs the block behind them (anchor and masks), and chooses the
// likeliest token of each position. On a graphics card its shape does not depend on how many
// were accepted: rows without a position write into a cell that nothing reads. On a processor it
// has as many rows as are verified ask for. The host gives positions and masks, and takes
// nothing: the drafted tokens stay on the device, where the verify reads them.
//
// Cache: full layers keep position p in cell p; sliding layers keep it in cell p modulo the
// ring, which is longer than the window, so that an answer can be taken back.
//
// Conventions of the architecture: Z Lab, "DFlash: Block Diffusion for Flash Speculative
// Decoding", arXiv 2602.06036.

#pragma once

#include "draft_head.h"
#include "gguf_file.h"

#include "ggml-cpp.h"
#include "llama.h"

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

// Sizes of a drafter, from its file.
struct slip_drafter_shape {
    int32_t n_layers = 0, n_embd = 0, n_heads = 0, n_heads_kv = 0, head_dim = 0, rope_dims = 0;
    int32_t block  = 0;  // trained block size in tokens, the anchor included; 0 without a drafter
    int32_t window = 0;  // of the sliding layers: keys at a distance below it; 0 without any
    bool    causal = false; // whether the block attends to itself only backwards
    float   norm_epsilon = 0, rope_base = 0;
    llama_token          mask = LLAMA_TOKEN_NULL;
    std::vector<int32_t> taps;    // layers of the target whose input is read

    // Tokens of the widest verify. Without a drafter a round is given its draft.
    int32_t rows() const { return block > 0 ? block : 16; }
    std::vector<uint8_t> sliding; // for each layer

    // Throws SLIP_ERROR_FILE for what is missing, and SLIP_ERROR_MODEL for a drafter of another kind under the same name,
    // which has parts that nothing here computes.
    static slip_drafter_shape read(const slip_gguf_file & file);

    // Whether the file brings an embedding or a head, in place of which the target's are used.
    static bool has_own_head(const slip_gguf_file & file);

    bool any_sliding() const;
    bool any_full() const;
};

// What a drafter takes, in bytes.
struct slip_drafter_memory {
    uint64_t device = 0, host = 0;
};

class slip_drafter {
public:
    static constexpr int32_t k_wide = 128; // rows of a prompt that are fed at a time

    // `n_ctx` positions can be fed. `exact`: cache in F32, no flash attention. The models and
    // `target_ctx` must outlive it; it computes on target_ctx's backend for `device`, or on one of
    // its own where the target has none there. `apart`: the target runs on another device, where its head is out of
    // reach, and the drafter takes a copy from the target's file. `waits`: a part of the target does, so that features are
    // waited for as they are then. `rows` of the head are read: see slip_draft_head.
    // `measure`: made of sizes alone, beside models without data, it can tell memory() and do nothing else. Throws
    // SLIP_ERROR_MEMORY, SLIP_ERROR_DEVICE, SLIP_ERROR_FILE.
    slip_drafter(const slip_drafter_shape & shape, const llama_model * draft, const llama_model * target, const slip_gguf_file & target_file,
        llama_context * target_ctx, ggml_backend_dev_t device, bool apart, bool waits, int32_t n_ctx, int32_t rows, bool exact,
        bool measure);
    ~slip_drafter();

    // Its weights, cache, queue and graphs, the largest of each that a context can bring.
    slip_drafter_memory memory() const;

    // Positions whose features are fed or queued; the next block stands behind them.
    int32_t position() const { return n_fed_ + n_queued_; }

    void reset();

    // Forgets positions from `position` on. False if the ring no longer holds what the shorter
    // context needs: then nothing but reset() helps.
    bool rewind(int32_t position);

    // Feeds what is queued where `n_rows` more would not fit beside it: a pass, which can be cancelled. What is queued
    // stays so then.
    void make_room(int32_t n_rows);

    // Queues the features of rows [0, n_rows) of the target's last pass, at position().
    // Feeds them at once when they do not fit the queue.
    void queue(int32_t n_rows);

    // The same for a pass that is on its way, of which the host does not know yet how many rows stay: all `n_rows` are
    // copied behind the queue by the device, and keep() says how many are queued. False where a copy would stop the host.
    bool bring(int32_t n_rows);
    void keep(int32_t n_rows) { n_queued_ += n_rows; }

    // Queues the work of one block behind all queued features: I32 [n_draft] tokens on
    // backend(), valid until the next call. 1 <= n_draft < block. They also go to the host:
    // see drafted().
    const ggml_tensor * draft(llama_token anchor, int32_t n_draft);

    // Token i of the last draft, once backend() was waited for.
    llama_token drafted(int32_t i) const { return staged_tokens()[i]; }

    // Rows of the head that a draft reads, unless too many of a text's tokens are not among them; and what the last one read.
    int32_t head_rows() const { return head_->rows(); }
    int32_t rows_read() const { return round_.shape.whole ? static_cast<int32_t>(head_weight_->ne[1]) : head_->rows(); }

    // Tokens of the text, after backend() was waited for; of a round with a draft, how much of that the target accepted.
    void see(const llama_token * tokens, int32_t n);
    void record(const llama_token * chosen, int32_t n_accepted, int32_t n_drafted);

    // A block's hidden states after the final norm: block * n_embd floats. Waits.
    void hidden(llama_token anchor, float * out);

    ggml_backend_t backend() const { return backend_; }

    // Since the last call: graphs built anew, graphs launched, waits of the host.
    struct counts { int32_t rebuilt = 0, launched = 0, waited = 0; };
    counts take_counts();

private:
    // What a graph is built for.
    struct graph_shape {
        int32_t n_rows  = 0; // of queued features that it feeds
        int32_t n_block = 0; // rows of the block behind them, the anchor's and masks; 0: none
        int32_t n_kv_full = 0, n_kv_ring = 0, n_out = 0;
        bool    hidden = false, whole = false; // whole: reads all of the head

        bool operator==(const graph_shape & other) const {
            const auto all = [](const graph_shape & s) {
                return std::make_tuple(s.n_rows, s.n_block, s.n_kv_full, s.n_kv_ring, s.n_out, s.hidden, s.whole);
            };
            return all(*this) == all(other);
        }
    };
    // One graph with its own memory, kept as long as its shape does.
    struct graph {
        std::vector<char> room; // of `context`: what ggml itself has no memory for ends the process
        ggml_context_ptr  context;
        ggml_gallocr_ptr  memory;
        ggml_cgraph *     nodes  = nullptr;
        ggml_tensor *     result = nullptr;
        graph_shape       shape;
        size_t            bytes = 0; // of `memory`
    };
    struct layer {
        ggml_tensor *attn_norm, *wq, *wk, *wv, *wo, *q_norm, *k_norm, *ffn_norm, *ffn_gate, *ffn_up, *ffn_down;
        ggml_tensor *k_cache, *v_cache; // [n_heads_kv * head_dim, cells + 1]
    };
    // Inputs of the host: one piece of memory on either side, one copy a graph.
    struct inputs {
        ggml_tensor *row_pos, *row_cell_full, *row_cell_ring;       // of the queued features
        ggml_tensor *block_pos, *block_cell_full, *block_cell_ring; // of the block
        ggml_tensor *noise;                                         // F32 [n_embd, block]: embeddings of anchor and masks
        ggml_tensor *mask_full, *mask_ring;                         // F16 [n_kv, block]
    };

    void load_weights(const llama_model * draft, const llama_model * target);
    void copy_head(const slip_gguf_file & target_file, const char * name);
    void make_tensors(int32_t n_ctx);
    void make_memory(ggml_backend_dev_t device);
    ggml_backend_buffer_ptr allocate(ggml_context * ctx);
    void embed(llama_token token, float * out) const;

    const graph & round_graph(int32_t n_draft, bool hidden);
    const graph & round_graph(const graph_shape & shape);
    void build(graph & g, const graph_shape & shape);
    std::vector<ggml_tensor *> products(ggml_context * ctx, ggml_cgraph * nodes, ggml_tensor * x, const std::vector<ggml_tensor *> & weights) const;
    void store_kv(ggml_context * ctx, ggml_cgraph * nodes, const layer & l, bool sliding, ggml_tensor * k, ggml_tensor * v,
        ggml_tensor * pos, ggml_tensor * cell_full, ggml_tensor * cell_ring, int32_t n_rows);
    ggml_tensor * attend(ggml_context * ctx, const layer & l, bool sliding, ggml_tensor * q, const graph_shape & shape);
    ggml_tensor * norm(ggml_context * ctx, ggml_tensor * x, ggml_tensor * weight) const;

    bool on_gpu() const;
    void copy_features(int32_t first_row, int32_t n_rows, ggml_tensor * to, int32_t at);
    void feed(const graph & g, int32_t n_rows);
    void run_block(const graph & g, llama_token anchor);
    void fill_rows(int32_t n_rows, int32_t capacity);
    void fill_block(const graph_shape & shape, llama_token anchor);
    void launch(const graph & g, size_t input_bytes);
    bool flash_supported() const;

    size_t offset_of(const ggml_tensor * input) const;
    template <typename T> T * staged(const ggml_tensor * input) const;
    llama_token * staged_tokens() const;

    slip_drafter_shape shape_;
    llama_context *    target_ctx_;
    ggml_backend_ptr   own_backend_; // where the target's context has none for the device
    ggml_backend_t     backend_;
    bool               exact_, flash_ = false, apart_, waits_; // apart: not on the target's device
    bool               measure_;
    slip_drafter_memory taken_;

    std::vector<layer> layers_;
    ggml_tensor *fc_ = nullptr, *fc_norm_ = nullptr, *out_norm_ = nullptr, *head_weight_ = nullptr;
    const ggml_tensor * embedding_ = nullptr; // on the host

    ggml_context_ptr        tensors_, head_tensor_;
    ggml_backend_buffer_ptr memory_, staging_, head_memory_;
    std::unique_ptr<slip_draft_head> head_;
    inputs                  in_ = {};
    ggml_tensor *           features_ = nullptr;      // F32 [n_embd, block, n_taps]: the queue
    ggml_tensor *           features_wide_ = nullptr; // F32 [n_embd, k_wide, n_taps]: of a prompt
    int32_t                 n_cells_full_ = 0, n_ring_ = 0;

    graph  round_, feed_, feed_wide_;
    ggml_tensor drafted_ = {}; // the first tokens of the last draft, as many as were asked for
    counts counts_;

    int32_t n_fed_    = 0; // positions in the cache
    int32_t n_queued_ = 0; // rows of features_ behind them
    int32_t high_     = 0; // no position from here on was ever written
};
