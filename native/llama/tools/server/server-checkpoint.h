// What a slot goes on from: copies of the states that cannot be cut, on the device or on the host.

#pragma once

#include "chat.h"
#include "common.h"

#include <cstdint>
#include <list>

struct server_checkpoint : common_prompt_checkpoint {
    int32_t place = -1; // of the slot's sequence on the device, where the states stay; -1: they are on the host

    // what cannot be rolled back of both contexts; a place on the device is lost to the checkpoint that had it
    void update(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id, int32_t place_new);

    void load(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id) const;
};

struct server_checkpoints : std::list<server_checkpoint> {
    static constexpr int32_t n_places = 2; // on the device, of each sequence

    // adds what the states will take on each device to what a fit leaves free there
    static void reserve(common_params & params);

    // those on the device belong to a sequence, and pass through its state, which is the same afterwards
    void to_host(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id);

    // gives back the places on the device that none of them has
    void trim(llama_context * ctx_tgt, llama_context * ctx_dft, llama_seq_id seq_id) const;

    void drop_on_device(); // of another sequence
    void drop_at(int32_t place);
};

// Which states of a prompt are worth keeping.
//
// A copy of a recurrent state to the host takes as long as reading a short question: one is made where a whole batch of
// tokens lies behind the one before. Those that the next prompt goes on from stay on the device: of where the answer is
// opened, for the next turn, and of the last question's beginning, for another one in its place. A prompt without
// messages has the place where it left the one before it, since the next one may leave it there too.
struct server_checkpoint_plan {
    static constexpr int32_t on_host = -1;
    static constexpr int32_t nowhere = -2;

    server_checkpoint_plan() = default;

    // n_shared: tokens that the prompt shares with n_held that the slot has
    server_checkpoint_plan(const llama_context * ctx, const common_chat_msg_spans & spans, int64_t n_tokens, int64_t n_shared, int64_t n_held);

    int64_t opening = -1;
    int64_t branch  = -1;

    // of a state behind so many tokens: on the device, or one of the above
    int32_t place(const server_checkpoints & checkpoints, int64_t n_tokens) const;

private:
    bool    recurrent = false;
    int64_t n_batch   = 0;
};
