// The drafter's head: the target's output matrix, of which a draft reads few rows.
//
// Those rows are gathered into a matrix of their own, byte by byte, laid out as the whole head where that is possible:
// then their logits are the whole head's. Behind the choice among them their tokens are looked up on the device. The set is draft_vocabulary.h's; a row that comes in
// is read from the target's file. The whole head stays at hand.

#pragma once

#include "draft_vocabulary.h"
#include "gguf_file.h"

#include "ggml-cpp.h"
#include "llama.h"

#include <cstdint>
#include <memory>

// Memory of `type` for the tensors of `ctx`; where it is measured, none, and nothing that is used must look for it.
ggml_backend_buffer_ptr slip_allocate(ggml_context * ctx, ggml_backend_buffer_type_t type, bool measure);

class slip_draft_head {
public:
    // Of `head` [n_embd, n_vocab], which is tensor `name` of `file`, on `backend`; `rows` as slip_draft_vocabulary::rows() counts
    // them, all where the backend cannot do with fewer. `measure`: of sizes alone, it can build and tell bytes(). Head,
    // vocabulary and backend must outlive it. Throws SLIP_ERROR_MEMORY, SLIP_ERROR_FILE.
    slip_draft_head(ggml_tensor * head, const slip_gguf_file & file, const char * name, const llama_vocab * vocab, ggml_backend_t backend, int32_t rows, bool measure);

    int32_t rows() const { return static_cast<int32_t>((few_ ? few_ : head_)->ne[1]); } // that a draft reads, unless...
    bool    whole() const { return !few_ || lost_ || (vocabulary_ && vocabulary_->suffers()); } // ... it reads the whole head

    uint64_t bytes() const { return bytes_; } // on the device, beside the head

    // The likeliest tokens I32 [n], or [1, n], of hidden states [n_embd, n].
    ggml_tensor * choose(ggml_context * ctx, ggml_tensor * hidden, bool whole) const;

    // As of slip_draft_vocabulary. Rows that come in are there for the next graph; true if any do: it waits for the backend.
    bool see(const llama_token * tokens, int32_t n);
    bool record(const llama_token * chosen, int32_t n_accepted, int32_t n_drafted);

private:
    bool gather(int32_t rows, bool measure);
    void bring(int32_t first, int32_t last);
    bool bring_changed();

    ggml_tensor *  head_;
    ggml_backend_t backend_;
    std::unique_ptr<slip_tensor_file> source_; // open where rows are read from it
    bool           lost_ = false; // the rows are no longer those of the set
    std::unique_ptr<slip_draft_vocabulary> vocabulary_;

    ggml_context_ptr        tensors_, tokens_tensor_;
    ggml_backend_buffer_ptr memory_, tokens_memory_;
    ggml_tensor *           few_ = nullptr, * tokens_ = nullptr; // rows [n_embd, n] and I32 [1, n], whose tokens they are
    uint64_t                bytes_ = 0;
};
