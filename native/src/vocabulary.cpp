#include "vocabulary.h"

#include "failure.h"
#include "header_check.h"
#include "log.h"
#include "repairs.h"

slip_vocab::slip_vocab(const std::string & path) {
    const slip_gguf_file file(path);
    if (file.text("general.architecture") != "dflash") {
        file.require_architecture("qwen35");
    }
    slip_check_vocabulary(file);
    const slip_repairs repairs(file);
    llama_model_params params = llama_model_default_params();
    params.vocab_only   = true;
    params.kv_overrides = repairs.overrides();
    slip_log_take_errors();
    model_.reset(llama_model_load_from_file(path.c_str(), params));
    if (!model_) {
        throw slip_failure(SLIP_ERROR_FILE, "The vocabulary of `" + path + "` cannot be read: " + slip_log_take_errors(), "Convert the model again.");
    }
}
