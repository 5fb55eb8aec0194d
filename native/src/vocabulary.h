// The vocabulary of a file alone, without its weights.

#pragma once

#include "llama-cpp.h"

#include <string>

struct slip_vocab {
    // Throws SLIP_ERROR_FILE or SLIP_ERROR_MODEL. The file may be a target's or a drafter's.
    explicit slip_vocab(const std::string & path);

    const llama_vocab * vocab() const { return llama_model_get_vocab(model_.get()); }

private:
    llama_model_ptr model_;
};
