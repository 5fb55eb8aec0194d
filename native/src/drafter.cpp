#include "drafter.h"

#include "devices.h"
#include "failure.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "llama-ext.h"
#include "llama-kv-step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace {

constexpr int32_t k_slack = 2048; // of the ring beyond the window: so much of an answer can be taken back
constexpr int32_t k_nodes = 2048;
constexpr int32_t k_behind = 4;   // masks behind those that are verified: what is drafted looks at them too

constexpr const char * k_weights[]       = { "fc.weight", "enc.output_norm.weight", "output_norm.weight" };
constexpr const char * k_layer_weights[] = { // in the order of slip_drafter::layer
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
};
constexpr const char * k_own_head[]      = { "token_embd.weight", "output.weight" };

std::string layer_weight(int32_t il, const char * name) {
    return "blk." + std::to_string(il) + "." + name + ".weight";
}

int32_t padded(int32_t n) {
    return GGML_PAD(n, 256); // cells of a cache, which graphs read in such steps and larger ones
}

ggml_tensor * weight(const llama_model * model, const std::string & name) {
    ggml_tensor * found = llama_model_get_weight(model, name.c_str());
    if (!found) {
        throw slip_failure(SLIP_ERROR_FILE, "The drafter lacks the tensor `" + name + "`.", "Convert the model again.");
    }
    return found;
}

// Rows [first, first + n) of an F32 matrix as a tensor of its own, for copies outside of a graph.
ggml_tensor rows_of(const ggml_tensor * matrix, int64_t first, int64_t n) {
    ggml_tensor rows = *matrix;
    rows.ne[0]     = matrix->ne[0] * n;
    rows.ne[1]     = rows.ne[2] = rows.ne[3] = 1;
    rows.nb[1]     = rows.nb[2] = rows.nb[3] = rows.ne[0] * sizeof(float);
    rows.data      = static_cast<char *>(matrix->data) + first * matrix->nb[1];
    rows.buffer    = matrix->view_src ? matrix->view_src->buffer : matrix->buffer;
    rows.view_src  = nullptr;
    rows.view_offs = 0;
    return rows;
}

// The first `n` numbers of a vector, or rows of each matrix, in a graph: the tensor itself where it has no more.
ggml_tensor * first_of(ggml_context * ctx, ggml_tensor * t, int64_t n) {
    const bool vector = ggml_n_dims(t) == 1;
    if (n == t->ne[vector ? 0 : 1]) {
        return t;
    }
    return vector ? ggml_view_1d(ctx, t, n, 0) : ggml_view_3d(ctx, t, t->ne[0], n, t->ne[2], t->nb[1], t->nb[2], 0);
}

} // namespace

// --- shape -------------------------------------------------------------------

// What computes something else: DSpark, DFlash2 and others are of the same architecture to llama.cpp.
static void check_kind(const slip_gguf_file & file, int32_t n_layers) {
    const auto refuse = [&](const std::string & has) {
        throw slip_failure(SLIP_ERROR_MODEL, "The drafter `" + file.path() + "` is of a kind that is not supported: it has " + has + ".",
            "Choose a DFlash drafter without it, or decode without one.");
    };
    std::set<std::string> known(std::begin(k_weights), std::end(k_weights));
    known.insert(std::begin(k_own_head), std::end(k_own_head));
    for (int32_t il = 0; il < n_layers; ++il) {
        for (const char * name : k_layer_weights) {
            known.insert(layer_weight(il, name));
        }
    }
    file.each_tensor([&](const ggml_tensor & tensor) {
        if (known.count(ggml_get_name(&tensor)) == 0) {
            refuse("the tensor `" + std::string(ggml_get_name(&tensor)) + "`");
        }
    });

    // Where llama.cpp reads 0 it takes the usual.
    const auto told = [&](const char * key, float usual) {
        const std::string whole = std::string("dflash.") + key;
        if (file.has(whole) && file.real(whole) != 0 && std::abs(file.real(whole) - usual) > 1e-3f * usual) {
            refuse("`" + whole + "` = " + std::to_string(file.real(whole)));
        }
    };
    told("embedding_scale", 1);
    told("attention.scale", 1 / std::sqrt(float(file.number("dflash.attention.key_length"))));
    told("attention.value_scale", 1);
    if (file.text("dflash.rope.scaling.type") != "none") {
        told("rope.scaling.factor", 1);
    }
    if (const std::string act = file.text("dflash.hidden_activation"); !act.empty() && act != "silu") {
        refuse("`dflash.hidden_activation` = `" + act + "`");
    }
}

bool slip_drafter_shape::has_own_head(const slip_gguf_file & file) {
    return std::any_of(std::begin(k_own_head), std::end(k_own_head), [&](const char * name) { return file.has_tensor(name); });
}

slip_drafter_shape slip_drafter_shape::read(const slip_gguf_file & file) {
    slip_drafter_shape out;
    const auto number = [&](const char * key) { return static_cast<int32_t>(file.number(std::string("dflash.") + key)); };
    out.n_layers     = number("block_count");
    check_kind(file, out.n_layers);
    out.n_embd       = number("embedding_length");
    out.n_heads      = number("attention.head_count");
    out.n_heads_kv   = number("attention.head_count_kv");
    out.head_dim     = number("attention.key_length");
    out.rope_dims    = file.has("dflash.rope.dimension_count") ? number("rope.dimension_count") : out.head_dim;
    out.block        = number("block_size");
    out.norm_epsilon = file.real("dflash.attention.layer_norm_rms_epsilon");
    out.rope_base    = file.real("dflash.rope.freq_base");
    out.mask         = static_cast<llama_token>(file.number("tokenizer.ggml.mask_token_id"));
    out.causal       = file.has("dflash.attention.causal") && file.number("dflash.attention.causal") != 0;
    for (const int64_t tap : file.numbers("dflash.target_layers")) {
        out.taps.push_back(static_cast<int32_t>(tap));
    }
    out.sliding.assign(out.n_layers, 0);
    if (file.has("dflash.attention.sliding_window") && number("attention.sliding_window") > 0) {
        out.window = number("attention.sliding_window");
        const auto pattern = file.numbers("dflash.attention.sliding_window_pattern");
        for (int32_t il = 0; il < out.n_layers && il < static_cast<int32_t>(pattern.size()); ++il) {
            out.sliding[il] = pattern[il] != 0;
        }
    }
    return out;
}

bool slip_drafter_shape::any_sliding() const {
    return std::find(sliding.begin(), sliding.end(), 1) != sliding.end();
}

bool slip_drafter_shape::any_full() const {
    return std::find(sliding.begin(), sliding.end(), 0) != sliding.end();
}

// --- memory ------------------------------------------------------------------

slip_drafter::slip_drafter(const slip_drafter_shape & shape, const llama_model * draft, const llama_model * target, const slip_gguf_file & target_file,
        llama_context * target_ctx, ggml_backend_dev_t device, bool apart, bool waits, int32_t n_ctx, int32_t rows, bool exact,
        bool measure) :
    shape_(shape), target_ctx_(target_ctx), backend_(llama_get_backend(target_ctx, device)), exact_(exact), apart_(apart),
    waits_(apart || waits), measure_(measure) {
    if (!backend_) {
        own_backend_.reset(ggml_backend_dev_init(device, nullptr));
        backend_ = own_backend_.get();
        // On the CPU it would take four threads, whatever cores there are.
        if (auto * set = (ggml_backend_set_n_threads_t) ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads"); set && backend_) {
            set(backend_, llama_n_threads(target_ctx));
        }
    }
    if (!backend_) {
        throw slip_failure(SLIP_ERROR_DEVICE, std::string("`") + ggml_backend_dev_name(device) + "` cannot be used by the drafter.",
            "Choose another device for it.");
    }
    load_weights(draft, target);
    const char * name = target_file.has_tensor("output.weight") ? "output.weight" : "token_embd.weight";
    if (apart_) {
        copy_head(target_file, name);
    }
    head_ = std::make_unique<slip_draft_head>(head_weight_, target_file, name, llama_model_get_vocab(target), backend_, rows, measure_);
    taken_.device += head_->bytes();
    make_tensors(n_ctx);
    make_memory(device);
    flash_ = !exact_ && flash_supported();
    // Whatever the device cannot run must show now, not in the first answer; so must what it has no room for, and the
    // round of a full context is the largest.
    build(feed_, { shape_.block });
    build(feed_wide_, { k_wide });
    round_graph({ shape_.block, shape_.block, n_cells_full_, n_ring_, shape_.block - 1, /*hidden*/ false, /*whole*/ true });
    if (!measure_) {
        round_graph(shape_.block - 1, /*hidden*/ false);
    }
    take_counts();
}

// Features of the last round may still be on their way into memory that goes now. A device that is lost throws
// instead of waiting, and nothing is on its way any more.
slip_drafter::~slip_drafter() {
    try {
        ggml_backend_synchronize(backend_);
    } catch (...) {
    }
}

void slip_drafter::load_weights(const llama_model * draft, const llama_model * target) {
    fc_       = weight(draft, "fc.weight");
    fc_norm_  = weight(draft, "enc.output_norm.weight");
    out_norm_ = weight(draft, "output_norm.weight");
    for (int32_t il = 0; il < shape_.n_layers; ++il) {
        ggml_tensor * w[std::size(k_layer_weights)];
        std::transform(std::begin(k_layer_weights), std::end(k_layer_weights), w,
            [&](const char * name) { return weight(draft, layer_weight(il, name)); });
        layers_.push_back({ w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], nullptr, nullptr });
    }
    head_weight_ = llama_model_get_weight(target, "output.weight");
    embedding_   = llama_model_get_weight(target, "token_embd.weight");
    taken_.device += llama_model_size(draft);
    if (!ggml_backend_buffer_is_host(embedding_->buffer)) {
        throw slip_failure(SLIP_ERROR_INTERNAL, "The target's embedding is not on the host.");
    }
}

void slip_drafter::copy_head(const slip_gguf_file & target_file, const char * name) {
    head_tensor_.reset(ggml_init({ ggml_tensor_overhead(), nullptr, /*no_alloc*/ true }));
    head_weight_ = ggml_dup_tensor(head_tensor_.get(), &target_file.tensor(name));
    head_memory_ = allocate(head_tensor_.get());
    if (measure_) {
        return;
    }
    if (!head_memory_) {
        throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for the drafter's copy of the head.",
            "Let it run where the target does.");
    }
    target_file.read(name, head_weight_);
}

size_t slip_drafter::offset_of(const ggml_tensor * input) const {
    return static_cast<const char *>(input->data) - static_cast<const char *>(in_.row_pos->data);
}

template <typename T> T * slip_drafter::staged(const ggml_tensor * input) const {
    return reinterpret_cast<T *>(static_cast<char *>(ggml_backend_buffer_get_base(staging_.get())) + offset_of(input));
}

// Behind the staged inputs: the tokens that the last draft brings to the host.
llama_token * slip_drafter::staged_tokens() const {
    return reinterpret_cast<llama_token *>(staged<char>(in_.mask_full) + ggml_nbytes(in_.mask_full));
}

// Memory for tensors on the device, counted.
ggml_backend_buffer_ptr slip_drafter::allocate(ggml_context * ctx) {
    ggml_backend_buffer_type_t type = ggml_backend_get_default_buffer_type(backend_);
    taken_.device += ggml_backend_alloc_ctx_tensors_from_buft_size(ctx, type);
    return slip_allocate(ctx, type, measure_);
}

slip_drafter_memory slip_drafter::memory() const {
    slip_drafter_memory out = taken_;
    for (const graph * g : { &round_, &feed_, &feed_wide_ }) {
        out.device += g->bytes;
    }
    return out;
}

// Everything of fixed size: caches, features, inputs.
void slip_drafter::make_tensors(int32_t n_ctx) {
    const int32_t n_taps = static_cast<int32_t>(shape_.taps.size());
    n_cells_full_ = padded(n_ctx + shape_.block);
    shape_.window = std::min(shape_.window, n_cells_full_); // a wider one sees all: no sum of it may wrap
    n_ring_       = std::min(n_cells_full_, padded(shape_.window + shape_.block + k_slack));

    tensors_.reset(ggml_init({ ggml_tensor_overhead() * (2 * layers_.size() + 16), nullptr, /*no_alloc*/ true }));
    ggml_context * ctx = tensors_.get();

    // The inputs first and side by side, so that one copy brings them; what is longest and rarely whole comes last.
    in_.row_pos         = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, k_wide);
    in_.row_cell_full   = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, k_wide);
    in_.row_cell_ring   = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, k_wide);
    in_.block_pos       = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, shape_.block);
    in_.block_cell_full = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, shape_.block);
    in_.block_cell_ring = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, shape_.block);
    in_.noise           = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, shape_.n_embd, shape_.block);
    in_.mask_ring       = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, shape_.any_sliding() ? n_ring_ : 1, shape_.block);
    in_.mask_full       = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, shape_.any_full() ? n_cells_full_ : 1, shape_.block);
    features_           = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, shape_.n_embd, shape_.block, n_taps);
    features_wide_      = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, shape_.n_embd, k_wide, n_taps);
    const ggml_type type = exact_ ? GGML_TYPE_F32 : GGML_TYPE_F16;
    for (int32_t il = 0; il < shape_.n_layers; ++il) {
        // One cell more than is ever read: rows without a position go there.
        const int64_t cells = 1 + (shape_.sliding[il] ? n_ring_ : n_cells_full_);
        layers_[il].k_cache = ggml_new_tensor_2d(ctx, type, shape_.n_heads_kv * shape_.head_dim, cells);
        layers_[il].v_cache = ggml_new_tensor_2d(ctx, type, shape_.n_heads_kv * shape_.head_dim, cells);
    }
}

void slip_drafter::make_memory(ggml_backend_dev_t device) {
    memory_ = allocate(tensors_.get());
    for (const ggml_tensor * input : { in_.row_pos, in_.row_cell_full, in_.row_cell_ring, in_.block_pos, in_.block_cell_full,
            in_.block_cell_ring, in_.noise, in_.mask_ring, in_.mask_full }) {
        taken_.host += ggml_nbytes(input); // staged there
    }
    if (measure_) {
        return;
    }
    ggml_backend_buffer_type_t host = ggml_backend_dev_host_buffer_type(device);
    if (memory_) {
        const size_t n_drafted = shape_.block * sizeof(llama_token);
        staging_.reset(ggml_backend_buft_alloc_buffer(host ? host : ggml_backend_cpu_buffer_type(),
            offset_of(in_.mask_full) + ggml_nbytes(in_.mask_full) + n_drafted));
    }
    if (!memory_ || !staging_) {
        throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for the drafter's cache.", "Choose a smaller context.");
    }
    ggml_backend_buffer_clear(memory_.get(), 0); // masked cells are multiplied by 0, and 0 times garbage may be NaN
    ggml_backend_buffer_clear(staging_.get(), 0);

    float * noise = staged<float>(in_.noise);
    for (int32_t i = 1; i < shape_.block; ++i) {
        embed(shape_.mask, noise + i * shape_.n_embd);
    }
}

void slip_drafter::embed(llama_token token, float * out) const {
    const char * row = static_cast<const char *>(embedding_->data) + token * embedding_->nb[1];
    if (embedding_->type == GGML_TYPE_F32) {
        std::memcpy(out, row, shape_.n_embd * sizeof(float));
    } else {
        ggml_get_type_traits(embedding_->type)->to_float(row, out, shape_.n_embd);
    }
}

bool slip_drafter::on_gpu() const {
    return slip_device_is_gpu(ggml_backend_get_device(backend_));
}

bool slip_drafter::flash_supported() const {
    ggml_context_ptr ctx(ggml_init({ ggml_tensor_overhead() * 8, nullptr, true }));
    const auto heads = [&](ggml_type type, int64_t n, int64_t n_heads) {
        return ggml_new_tensor_3d(ctx.get(), type, shape_.head_dim, n, n_heads);
    };
    ggml_tensor * op = ggml_flash_attn_ext(ctx.get(), heads(GGML_TYPE_F32, shape_.block, shape_.n_heads),
        heads(GGML_TYPE_F16, 256, shape_.n_heads_kv), heads(GGML_TYPE_F16, 256, shape_.n_heads_kv),
        ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F16, 256, shape_.block), 1, 0, 0);
    return ggml_backend_supports_op(backend_, op);
}

// --- graphs ------------------------------------------------------------------

ggml_tensor * slip_drafter::norm(ggml_context * ctx, ggml_tensor * x, ggml_tensor * weight) const {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, shape_.norm_epsilon), weight);
}

// The products of `x` with several weights next to each other: a backend can compute them together.
std::vector<ggml_tensor *> slip_drafter::products(ggml_context * ctx, ggml_cgraph * nodes, ggml_tensor * x, const std::vector<ggml_tensor *> & weights) const {
    std::vector<ggml_tensor *> result;
    for (ggml_tensor * w : weights) {
        result.push_back(ggml_mul_mat(ctx, w, x));
        ggml_build_forward_expand(nodes, result.back());
    }
    return result;
}

// Keys (not yet normalised) and values [n_kv, n_rows] into their cells.
void slip_drafter::store_kv(ggml_context * ctx, ggml_cgraph * nodes, const layer & l, bool sliding, ggml_tensor * k, ggml_tensor * v,
        ggml_tensor * pos, ggml_tensor * cell_full, ggml_tensor * cell_ring, int32_t n_rows) {
    const int64_t n_kv = int64_t(shape_.n_heads_kv) * shape_.head_dim;
    ggml_tensor * cells = ggml_view_1d(ctx, sliding ? cell_ring : cell_full, n_rows, 0);
    pos = ggml_view_1d(ctx, pos, n_rows, 0);
    // Views first: norm, rope and set_rows stand next to each other then, and a backend can compute them together.
    ggml_build_forward_expand(nodes, cells);
    ggml_build_forward_expand(nodes, pos);

    k = ggml_reshape_3d(ctx, k, shape_.head_dim, shape_.n_heads_kv, n_rows);
    k = ggml_rope_ext(ctx, norm(ctx, k, l.k_norm), pos, nullptr, shape_.rope_dims, GGML_ROPE_TYPE_NEOX, 0, shape_.rope_base, 1, 0, 1, 0, 0);
    ggml_build_forward_expand(nodes, ggml_set_rows(ctx, l.k_cache, ggml_view_2d(ctx, k, n_kv, n_rows, k->nb[2], 0), cells));
    ggml_build_forward_expand(nodes, ggml_set_rows(ctx, l.v_cache, v, cells));
}

// Attention of q [head_dim, n_heads, n_block] over the cache -> [n_heads * head_dim, n_block].
ggml_tensor * slip_drafter::attend(ggml_context * ctx, const layer & l, bool sliding, ggml_tensor * q, const graph_shape & shape) {
    const int64_t n_kv  = sliding ? shape.n_kv_ring : shape.n_kv_full;
    const float   scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
    const auto heads = [&](ggml_tensor * cache) {
        return ggml_view_3d(ctx, cache, shape_.head_dim, n_kv, shape_.n_heads_kv, cache->nb[1],
            shape_.head_dim * ggml_element_size(cache), 0);
    };
    ggml_tensor * input = sliding ? in_.mask_ring : in_.mask_full;
    ggml_tensor * mask  = ggml_view_2d(ctx, input, n_kv, shape.n_block, n_kv * ggml_element_size(input), 0);
    q = ggml_permute(ctx, q, 0, 2, 1, 3);

    if (flash_) {
        ggml_tensor * out = ggml_flash_attn_ext(ctx, q, heads(l.k_cache), heads(l.v_cache), mask, scale, 0, 0);
        ggml_prec_set_acc(out, GGML_PREC_F32);
        return ggml_reshape_2d(ctx, out, int64_t(shape_.n_heads) * shape_.head_dim, shape.n_block);
    }
    ggml_tensor * kq = ggml_mul_mat(ctx, heads(l.k_cache), q);
    ggml_prec_set_acc(kq, GGML_PREC_F32);
    kq = ggml_soft_max_ext(ctx, kq, mask, scale, 0);
    ggml_tensor * v = ggml_cont(ctx, ggml_permute(ctx, heads(l.v_cache), 1, 0, 2, 3));
    ggml_tensor * out = ggml_permute(ctx, ggml_mul_mat(ctx, v, kq), 0, 2, 1, 3);
    return ggml_cont_2d(ctx, out, int64_t(shape_.n_heads) * shape_.head_dim, shape.n_block);
}

void slip_drafter::build(graph & g, const graph_shape & shape) {
    ++counts_.rebuilt;
    g.nodes = nullptr; // what fails on the way is built again
    g.shape = shape;
    g.context.reset();
    g.room.resize(ggml_tensor_overhead() * k_nodes + ggml_graph_overhead_custom(k_nodes, false));
    g.context.reset(ggml_init({ g.room.size(), g.room.data(), true }));
    ggml_context * ctx = g.context.get();
    ggml_cgraph * nodes = ggml_new_graph_custom(ctx, k_nodes, false);

    // [n_embd, n_rows, n_taps] -> [n_taps * n_embd, n_rows], the taps of a position side by side
    const int32_t n_rows = shape.n_rows;
    ggml_tensor * taps = first_of(ctx, n_rows == k_wide ? features_wide_ : features_, n_rows);
    taps = ggml_cont(ctx, ggml_permute(ctx, taps, 0, 2, 1, 3));
    taps = ggml_reshape_2d(ctx, taps, taps->ne[0] * taps->ne[1], n_rows);
    ggml_tensor * fused = norm(ctx, ggml_mul_mat(ctx, fc_, taps), fc_norm_);
    // Of all layers at once, but of many rows layer by layer: it takes less memory and is no faster.
    const int32_t at_once = n_rows <= shape_.block ? shape_.n_layers : 1;
    for (int32_t first = 0; first < shape_.n_layers; first += at_once) {
        std::vector<ggml_tensor *> weights;
        for (int32_t il = first; il < first + at_once; ++il) {
            weights.insert(weights.end(), { layers_[il].wk, layers_[il].wv });
        }
        const std::vector<ggml_tensor *> kv = products(ctx, nodes, fused, weights);
        for (int32_t i = 0; i < at_once; ++i) {
            store_kv(ctx, nodes, layers_[first + i], shape_.sliding[first + i], kv[2 * i], kv[2 * i + 1], in_.row_pos, in_.row_cell_full,
                in_.row_cell_ring, n_rows);
        }
    }

    if (shape.n_block > 0) {
        ggml_tensor * x   = first_of(ctx, in_.noise, shape.n_block);
        ggml_tensor * pos = first_of(ctx, in_.block_pos, shape.n_block);
        ggml_build_forward_expand(nodes, pos); // before all else, as in store_kv
        for (int32_t il = 0; il < shape_.n_layers; ++il) {
            const layer & l = layers_[il];
            const bool sliding = shape_.sliding[il];
            ggml_tensor * y = norm(ctx, x, l.attn_norm);
            const std::vector<ggml_tensor *> qkv = products(ctx, nodes, y, { l.wq, l.wk, l.wv });
            store_kv(ctx, nodes, l, sliding, qkv[1], qkv[2], in_.block_pos, in_.block_cell_full, in_.block_cell_ring, shape.n_block);
            ggml_tensor * q = ggml_reshape_3d(ctx, qkv[0], shape_.head_dim, shape_.n_heads, shape.n_block);
            q = ggml_rope_ext(ctx, norm(ctx, q, l.q_norm), pos, nullptr, shape_.rope_dims,
                GGML_ROPE_TYPE_NEOX, 0, shape_.rope_base, 1, 0, 1, 0, 0);
            x = ggml_add(ctx, ggml_mul_mat(ctx, l.wo, attend(ctx, l, sliding, q, shape)), x);
            y = norm(ctx, x, l.ffn_norm);
            y = ggml_swiglu_split(ctx, ggml_mul_mat(ctx, l.ffn_gate, y), ggml_mul_mat(ctx, l.ffn_up, y));
            x = ggml_add(ctx, ggml_mul_mat(ctx, l.ffn_down, y), x);
        }
        if (shape.hidden) {
            g.result = norm(ctx, x, out_norm_);
        } else {
            // The anchor's own row proposes nothing, and the head is half of the drafter's bytes.
            ggml_tensor * rows = ggml_view_2d(ctx, x, shape_.n_embd, shape.n_out, x->nb[1], x->nb[1]);
            g.result = head_->choose(ctx, norm(ctx, rows, out_norm_), shape.whole);
        }
        ggml_set_output(g.result);
        ggml_build_forward_expand(nodes, g.result);
    }

    slip_device_check(backend_, nodes, "run the drafter", "Choose another device, or decode without the drafter.");
    if (!g.memory) {
        g.memory.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend_)));
    }
    if (measure_) {
        ggml_gallocr_reserve_n_size(g.memory.get(), nodes, nullptr, nullptr, &g.bytes);
        g.nodes = nodes;
        return;
    }
    if (!ggml_gallocr_alloc_graph(g.memory.get(), nodes)) {
        throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for the drafter.", "Choose a smaller context.");
    }
    g.bytes = ggml_gallocr_get_buffer_size(g.memory.get(), 0);
    g.nodes = nodes;
}

// A graphics card takes about the same time for one row and for all of them, and a graph for each number of rows has to be
// made first; a processor's time goes by the rows. Masks well behind what is verified change nothing in it, the next few do
// (native/README.md, "The round").
const slip_drafter::graph & slip_drafter::round_graph(int32_t n_draft, bool hidden) {
    const bool    all     = on_gpu() || hidden;
    const int32_t n_block = all ? shape_.block : std::min<int32_t>(shape_.block, GGML_PAD(1 + n_draft + k_behind, 4));
    const int32_t n_rows  = all || n_queued_ > n_block ? shape_.block : n_block;
    const int32_t n_out   = hidden ? 0 : on_gpu() ? shape_.block - 1 : n_draft;
    const int32_t step    = llama_kv_step(memory_.get()); // as the target's cache grows
    const int32_t end     = GGML_PAD(position() + shape_.block, step);
    return round_graph({ n_rows, n_block, std::min(n_cells_full_, end), std::min(n_ring_, end), n_out, hidden, head_->whole() });
}

const slip_drafter::graph & slip_drafter::round_graph(const graph_shape & shape) {
    if (!round_.nodes || !(round_.shape == shape)) {
        build(round_, shape);
    }
    return round_;
}

// --- positions ---------------------------------------------------------------

void slip_drafter::reset() {
    n_fed_ = n_queued_ = high_ = 0;
}

bool slip_drafter::rewind(int32_t position) {
    if (position >= this->position()) {
        return true;
    }
    const int32_t first = std::max(0, position - shape_.window + 1); // what a sliding layer will still see
    if (shape_.any_sliding() && first < position && first + n_ring_ < high_) {
        return false;
    }
    n_queued_ = std::max(0, position - n_fed_);
    n_fed_    = std::min(n_fed_, position);
    return true;
}

// --- work --------------------------------------------------------------------

// Features of rows of the target's last pass into rows `at`... of each tap of `to`.
void slip_drafter::copy_features(int32_t first_row, int32_t n_rows, ggml_tensor * to, int32_t at) {
    for (size_t k = 0; k < shape_.taps.size(); ++k) {
        ggml_tensor * tap = llama_get_layer_inp_tensor(target_ctx_, shape_.taps[k]);
        ggml_tensor from = rows_of(tap, first_row, n_rows);
        ggml_tensor into = rows_of(to, int64_t(k) * to->ne[1] + at, n_rows);
        ggml_backend_tensor_copy_async(llama_get_tensor_backend(target_ctx_, tap), backend_, &from, &into);
    }
    if (waits_) {
        // The other device knows nothing of this one's order: the target's next pass may overwrite its rows.
        ++counts_.waited;
        ggml_backend_synchronize(backend_);
    }
}

void slip_drafter::make_room(int32_t n_rows) {
    if (n_queued_ + n_rows > shape_.block && n_queued_ > 0) {
        feed(feed_, n_queued_);
        n_queued_ = 0;
    }
}

void slip_drafter::queue(int32_t n_rows) {
    make_room(n_rows);
    if (n_rows <= shape_.block) {
        copy_features(0, n_rows, features_, n_queued_);
        n_queued_ += n_rows;
        return;
    }
    for (int32_t done = 0; done < n_rows; done += k_wide) {
        const int32_t n = std::min(k_wide, n_rows - done);
        copy_features(done, n, features_wide_, 0);
        feed(feed_wide_, n);
    }
}

bool slip_drafter::bring(int32_t n_rows) {
    if (!on_gpu() || waits_ || n_queued_ + n_rows > shape_.block) {
        return false;
    }
    copy_features(0, n_rows, features_, n_queued_);
    return true;
}

// Feeds `n_rows` of the features that `g` reads, without a block behind them.
void slip_drafter::feed(const graph & g, int32_t n_rows) {
    fill_rows(n_rows, g.shape.n_rows);
    launch(g, offset_of(in_.block_pos));
    n_fed_ += n_rows;
    high_   = std::max(high_, n_fed_);
    // The staged inputs and the features may be written again at once.
    ++counts_.waited;
    ggml_backend_synchronize(backend_);
}

void slip_drafter::run_block(const graph & g, llama_token anchor) {
    fill_rows(n_queued_, g.shape.n_rows);
    fill_block(g.shape, anchor);
    const size_t mask = size_t(g.shape.n_kv_full) * g.shape.n_block * sizeof(ggml_fp16_t);
    launch(g, offset_of(in_.mask_full) + (shape_.any_full() ? mask : 0));
    n_fed_   += n_queued_;
    n_queued_ = 0;
    high_     = std::max(high_, n_fed_ + g.shape.n_block);
}

const ggml_tensor * slip_drafter::draft(llama_token anchor, int32_t n_draft) {
    const graph & g = round_graph(n_draft, false);
    run_block(g, anchor);
    drafted_ = *g.result;
    drafted_.ne[0] = n_draft;
    drafted_.ne[1] = drafted_.ne[2] = drafted_.ne[3] = 1;
    drafted_.nb[1] = drafted_.nb[2] = drafted_.nb[3] = n_draft * sizeof(llama_token);
    ggml_backend_tensor_get_async(backend_, &drafted_, staged_tokens(), 0, n_draft * sizeof(llama_token));
    return &drafted_;
}

void slip_drafter::see(const llama_token * tokens, int32_t n) {
    counts_.waited += head_->see(tokens, n);
}

void slip_drafter::record(const llama_token * chosen, int32_t n_accepted, int32_t n_drafted) {
    counts_.waited += head_->record(chosen, n_accepted, n_drafted);
}

void slip_drafter::hidden(llama_token anchor, float * out) {
    const graph & g = round_graph(0, true);
    run_block(g, anchor);
    ggml_backend_synchronize(backend_);
    ggml_backend_tensor_get(g.result, out, 0, ggml_nbytes(g.result));
}

void slip_drafter::fill_rows(int32_t n_rows, int32_t capacity) {
    int32_t * pos  = staged<int32_t>(in_.row_pos);
    int64_t * full = staged<int64_t>(in_.row_cell_full);
    int64_t * ring = staged<int64_t>(in_.row_cell_ring);
    for (int32_t i = 0; i < capacity; ++i) {
        const int32_t p = n_fed_ + i;
        pos[i]  = p;
        full[i] = i < n_rows ? p : n_cells_full_;
        ring[i] = i < n_rows ? p % n_ring_ : n_ring_;
    }
}

// The block behind the queued features, and who sees whom.
void slip_drafter::fill_block(const graph_shape & shape, llama_token anchor) {
    const int32_t start = position(), end = start + shape.n_block;
    int32_t * pos  = staged<int32_t>(in_.block_pos);
    int64_t * full = staged<int64_t>(in_.block_cell_full);
    int64_t * ring = staged<int64_t>(in_.block_cell_ring);
    for (int32_t i = 0; i < shape.n_block; ++i) {
        pos[i]  = start + i;
        full[i] = start + i;
        ring[i] = (start + i) % n_ring_;
    }
    embed(anchor, staged<float>(in_.noise));

    const ggml_fp16_t open = ggml_fp32_to_fp16(0), shut = ggml_fp32_to_fp16(-INFINITY);
    // Opens the cells of positions [from, to) in a row of a mask of n_kv cells, which hold p in cell p modulo `cells`.
    const auto row = [&](ggml_fp16_t * mask, int32_t n_kv, int32_t cells, int32_t from, int32_t to) {
        std::fill(mask, mask + n_kv, shut);
        const int32_t a = from % cells, n = to - from;
        std::fill(mask + a, mask + std::min(a + n, cells), open);
        if (a + n > cells) {
            std::fill(mask, mask + a + n - cells, open);
        }
    };
    for (int32_t i = 0; i < shape.n_block; ++i) {
        const int32_t to = shape_.causal ? start + i + 1 : end;
        if (shape_.any_full()) {
            row(staged<ggml_fp16_t>(in_.mask_full) + int64_t(i) * shape.n_kv_full, shape.n_kv_full, n_cells_full_, 0, to);
        }
        if (shape_.any_sliding()) {
            const int32_t from = std::max(0, start + i - shape_.window + 1);
            row(staged<ggml_fp16_t>(in_.mask_ring) + int64_t(i) * shape.n_kv_ring, shape.n_kv_ring, n_ring_, from, to);
        }
    }
}

// Brings the first `input_bytes` of the inputs and runs the graph.
void slip_drafter::launch(const graph & g, size_t input_bytes) {
    ggml_tensor all = *in_.row_pos; // stands for all inputs: they lie behind it
    all.type  = GGML_TYPE_I8;
    all.ne[0] = static_cast<int64_t>(input_bytes);
    all.nb[0] = 1;
    all.nb[1] = all.nb[2] = all.nb[3] = input_bytes;
    ggml_backend_tensor_set_async(backend_, &all, ggml_backend_buffer_get_base(staging_.get()), 0, input_bytes);
    ++counts_.launched;
    const ggml_status status = ggml_backend_graph_compute_async(backend_, g.nodes);
    if (status == GGML_STATUS_ABORTED) {
        throw slip_failure(SLIP_CANCELLED, "Cancelled.");
    }
    if (status != GGML_STATUS_SUCCESS) {
        const bool memory = status == GGML_STATUS_ALLOC_FAILED;
        throw slip_failure(memory ? SLIP_ERROR_MEMORY : SLIP_ERROR_DEVICE, "The drafter failed with status " + std::to_string(status) + ".",
            memory ? "Choose a smaller context, or the CPU." : "Try again, or choose the CPU.");
    }
}

slip_drafter::counts slip_drafter::take_counts() {
    return std::exchange(counts_, {});
}
