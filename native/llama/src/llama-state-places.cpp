#include "llama-state-places.h"

#include "llama-context.h"
#include "llama-impl.h"
#include "llama-kv-cache-iswa.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-recurrent.h"

llama_seq_id llama_context::state_seq_place(llama_seq_id seq_id, llama_state_seq_flags flags) {
    static_assert(LLAMA_MAX_SEQ <= 1 << 16, "places come behind the sequences");
    return seq_id | (llama_seq_id) (flags >> 8) << 16;
}

void llama_context::state_seq_drop(llama_seq_id seq_id, llama_state_seq_flags flags) {
    const auto stored = mem_storage.find(state_seq_place(seq_id, flags));
    if (stored == mem_storage.end()) {
        return;
    }
    synchronize(); // a copy may be on its way
    mem_storage.erase(stored);
    LLAMA_LOG_INFO("%s: gave back a state of sequence %d\n", __func__, seq_id);
}

std::map<ggml_backend_buffer_type_t, size_t> llama_context::state_breakdown() const {
    std::map<ggml_backend_buffer_type_t, size_t> ret;
    const auto add = [&](const llama_memory_i * part) {
        if (part) {
            for (const auto & [buft, size] : part->memory_breakdown()) {
                ret[buft] += size;
            }
        }
    };

    const llama_kv_cache_iswa * windowed = dynamic_cast<const llama_kv_cache_iswa *>(memory.get());
    if (const auto * hybrid = dynamic_cast<const llama_memory_hybrid *>(memory.get())) {
        add(hybrid->get_mem_recr());
    } else if (const auto * both = dynamic_cast<const llama_memory_hybrid_iswa *>(memory.get())) {
        add(both->get_mem_recr());
        windowed = both->get_mem_attn();
    } else {
        add(dynamic_cast<const llama_memory_recurrent *>(memory.get()));
    }
    add(windowed ? windowed->get_swa() : nullptr);
    return ret;
}

void llama_state_seq_drop(llama_context * ctx, llama_seq_id seq_id, llama_state_seq_flags flags) {
    ctx->state_seq_drop(seq_id, flags);
}

std::map<ggml_backend_buffer_type_t, size_t> llama_get_state_breakdown(const llama_context * ctx) {
    return ctx->state_breakdown();
}
