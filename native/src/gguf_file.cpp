#include "gguf_file.h"

#include "failure.h"
#include "log.h"

#include "ggml-backend.h"
#include "llama.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

static const char * k_tokens = "tokenizer.ggml.tokens";

static int64_t whole_number(const void * data, int64_t index, gguf_type type) {
    switch (type) {
        case GGUF_TYPE_UINT8:  return static_cast<const uint8_t  *>(data)[index];
        case GGUF_TYPE_INT8:   return static_cast<const int8_t   *>(data)[index];
        case GGUF_TYPE_UINT16: return static_cast<const uint16_t *>(data)[index];
        case GGUF_TYPE_INT16:  return static_cast<const int16_t  *>(data)[index];
        case GGUF_TYPE_UINT32: return static_cast<const uint32_t *>(data)[index];
        case GGUF_TYPE_INT32:  return static_cast<const int32_t  *>(data)[index];
        case GGUF_TYPE_UINT64: return static_cast<int64_t>(static_cast<const uint64_t *>(data)[index]);
        case GGUF_TYPE_INT64:  return static_cast<const int64_t  *>(data)[index];
        case GGUF_TYPE_BOOL:   return static_cast<const int8_t   *>(data)[index] != 0;
        default: return 0; // see is_whole
    }
}

static bool is_whole(gguf_type type) {
    return type != GGUF_TYPE_FLOAT32 && type != GGUF_TYPE_FLOAT64 && type != GGUF_TYPE_STRING && type != GGUF_TYPE_ARRAY;
}

// Versions and byte orders that ggml does not read: no other copy of the file will help.
static void check_version(const std::string & path, const char (&start)[8]) {
    uint32_t version = 0;
    std::memcpy(&version, start + 4, sizeof(version));
    if ((version & 0xFFFF) == 0) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path + "` is written in the other byte order.",
            "Choose the file for little-endian machines, or turn it round with `gguf_convert_endian.py`.");
    }
    if (version < 2) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path + "` is written in GGUF version " + std::to_string(version) + ", which is no longer read.",
            "Choose a newer file, or convert the original model.");
    }
    if (version > GGUF_VERSION) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path + "` is written in GGUF version " + std::to_string(version) + "; this Slipstream reads up to " + std::to_string(GGUF_VERSION) + ".",
            "Use a newer Slipstream, or convert the original model.");
    }
}

slip_gguf_file::part::part(const std::string & path) : path(path), tensors(nullptr, ggml_free), file(nullptr, gguf_free) {
    const auto fs_path = std::filesystem::u8path(path);
    std::error_code error;
    const auto bytes = std::filesystem::file_size(fs_path, error);
    if (error) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path + "` cannot be opened: " + error.message() + ".",
            "Check the path, or convert the model again.");
    }

    char start[8] = {};
    std::ifstream(fs_path, std::ios::binary).read(start, sizeof(start));
    if (std::memcmp(start, "GGUF", 4) != 0) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path + "` is not a GGUF file.",
            "Choose a file that Slipstream converted, or convert the model again.");
    }
    check_version(path, start);

    ggml_context * found = nullptr;
    slip_log_take_errors();
    file.reset(gguf_init_from_file(path.c_str(), { /*.no_alloc =*/ true, /*.ctx =*/ &found }));
    tensors.reset(found);
    if (!file) {
        throw slip_failure(SLIP_ERROR_FILE,
            "The header of `" + path + "` cannot be read: " + slip_log_take_errors() + ".",
            "The file is incomplete or damaged: convert the model again.");
    }

    size_t end = gguf_get_data_offset(file.get());
    for (int64_t i = 0; i < gguf_get_n_tensors(file.get()); ++i) {
        end = std::max(end, gguf_get_data_offset(file.get()) +
            gguf_get_tensor_offset(file.get(), i) + gguf_get_tensor_size(file.get(), i));
    }
    if (bytes < end) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path + "` is incomplete: it has " + std::to_string(bytes) + " bytes of " + std::to_string(end) + ".",
            "Convert or download it again.");
    }
}

slip_gguf_file::slip_gguf_file(const std::string & path) {
    parts_.emplace_back(path);
    if (has("split.count") && number("split.count") > 1) {
        open_other_parts();
    }
}

void slip_gguf_file::open_other_parts() {
    const std::string path = parts_.front().path;
    const int32_t count = static_cast<int32_t>(std::min<int64_t>(number("split.count"), 1000));
    if (number("split.no") != 0) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path + "` is part " + std::to_string(number("split.no") + 1) + " of " + std::to_string(count) + " of a model.",
            "Choose the first part, with the others beside it.");
    }
    std::vector<char> prefix(path.size() + 1), name(path.size() + 32);
    if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, count) <= 0) {
        llama_split_path(name.data(), name.size(), "NAME", 0, count);
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path + "` is the first of " + std::to_string(count) + " parts, and its name does not say so.",
            "Give it the name `" + std::string(name.data()) + "`, and the others theirs.");
    }
    for (int32_t i = 1; i < count; ++i) {
        llama_split_path(name.data(), name.size(), prefix.data(), i, count);
        parts_.emplace_back(name.data());
    }
}

void slip_gguf_file::require_architecture(const std::string & architecture) const {
    const std::string found = text("general.architecture");
    if (found != architecture) {
        throw slip_failure(SLIP_ERROR_MODEL,
            "`" + path() + "` holds a model of architecture `" + found + "`; `" + architecture + "` is needed here.",
            architecture == "dflash" ? "Choose the DFlash drafter of this target." : "Choose a Qwen3.5 model.");
    }
}

int64_t slip_gguf_file::require(const std::string & key) const {
    const int64_t id = gguf_find_key(keys(), key.c_str());
    if (id < 0) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path() + "` lacks the key `" + key + "`.", "Convert the model again.");
    }
    return id;
}

// ggml aborts the process where a value is asked for as another type than it has.
void slip_gguf_file::require_type(const std::string & key, bool fits, const char * wanted) const {
    if (!fits) {
        const gguf_type type = gguf_get_kv_type(keys(), require(key));
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path() + "` holds `" + key + "` as " + gguf_type_name(type) + "; it has to be " + wanted + ".", "Convert the model again.");
    }
}

bool slip_gguf_file::has(const std::string & key) const {
    return gguf_find_key(keys(), key.c_str()) >= 0;
}

bool slip_gguf_file::is_array(const std::string & key) const {
    const int64_t id = gguf_find_key(keys(), key.c_str());
    return id >= 0 && gguf_get_kv_type(keys(), id) == GGUF_TYPE_ARRAY;
}

float slip_gguf_file::real(const std::string & key) const {
    const int64_t id = require(key);
    const float value = gguf_get_kv_type(keys(), id) == GGUF_TYPE_FLOAT32 ? gguf_get_val_f32(keys(), id) : static_cast<float>(number(key));
    require_type(key, std::isfinite(value) && value >= 0.0f, "a finite number from 0 up");
    return value;
}

int64_t slip_gguf_file::number(const std::string & key) const {
    const int64_t id = require(key);
    const gguf_type type = gguf_get_kv_type(keys(), id);
    require_type(key, is_whole(type), "a whole number");
    return whole_number(gguf_get_val_data(keys(), id), 0, type);
}

void slip_gguf_file::require_numbers(const std::string & prefix) const {
    for (int64_t id = 0; id < gguf_get_n_kv(keys()); ++id) {
        const std::string key = gguf_get_key(keys(), id);
        gguf_type type = gguf_get_kv_type(keys(), id);
        const bool array = type == GGUF_TYPE_ARRAY;
        if (key.compare(0, prefix.size(), prefix) != 0 || type == GGUF_TYPE_STRING) {
            continue;
        }
        if (array) {
            type = gguf_get_arr_type(keys(), id);
            if (type == GGUF_TYPE_STRING || type == GGUF_TYPE_ARRAY) {
                continue;
            }
        }
        const void * data = array ? gguf_get_arr_data(keys(), id) : gguf_get_val_data(keys(), id);
        const size_t n    = array ? gguf_get_arr_n(keys(), id) : 1;
        for (size_t i = 0; i < n; ++i) {
            const double value = type == GGUF_TYPE_FLOAT32 ? static_cast<const float *>(data)[i]
                               : type == GGUF_TYPE_FLOAT64 ? static_cast<const double *>(data)[i]
                                                           : static_cast<double>(whole_number(data, static_cast<int64_t>(i), type));
            if (!std::isfinite(value) || value < 0 || (is_whole(type) && value > INT32_MAX)) {
                throw slip_failure(SLIP_ERROR_FILE,
                    "`" + path() + "` has `" + key + "` = " + std::to_string(value) + ", which no model can have.", "Convert the model again.");
            }
        }
    }
}

void slip_gguf_file::each_tensor(const std::function<void(const ggml_tensor &)> & with) const {
    for (const part & part : parts_) {
        for (ggml_tensor * t = ggml_get_first_tensor(part.tensors.get()); t; t = ggml_get_next_tensor(part.tensors.get(), t)) {
            with(*t);
        }
    }
}

std::vector<int64_t> slip_gguf_file::numbers(const std::string & key) const {
    const int64_t id = require(key);
    require_type(key, gguf_get_kv_type(keys(), id) == GGUF_TYPE_ARRAY && is_whole(gguf_get_arr_type(keys(), id)),
        "an array of whole numbers");
    std::vector<int64_t> out(gguf_get_arr_n(keys(), id));
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = whole_number(gguf_get_arr_data(keys(), id), i, gguf_get_arr_type(keys(), id));
    }
    return out;
}

std::string slip_gguf_file::text(const std::string & key) const {
    const int64_t id = gguf_find_key(keys(), key.c_str());
    const bool there = id >= 0 && gguf_get_kv_type(keys(), id) == GGUF_TYPE_STRING;
    return there ? gguf_get_val_str(keys(), id) : "";
}

const slip_gguf_file::part * slip_gguf_file::part_with(const std::string & name) const {
    const auto found = std::find_if(parts_.begin(), parts_.end(),
        [&](const part & part) { return ggml_get_tensor(part.tensors.get(), name.c_str()) != nullptr; });
    return found == parts_.end() ? nullptr : &*found;
}

bool slip_gguf_file::has_tensor(const std::string & name) const {
    return part_with(name) != nullptr;
}

const ggml_tensor & slip_gguf_file::tensor(const std::string & name) const {
    const part * found = part_with(name);
    if (!found) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path() + "` lacks the tensor `" + name + "`.", "Convert the model again.");
    }
    return *ggml_get_tensor(found->tensors.get(), name.c_str());
}

uint64_t slip_gguf_file::bytes() const {
    uint64_t sum = 0;
    for (const part & part : parts_) {
        for (int64_t i = 0; i < gguf_get_n_tensors(part.file.get()); ++i) {
            sum += gguf_get_tensor_size(part.file.get(), i);
        }
    }
    return sum;
}

int64_t slip_gguf_file::dimension(const std::string & name, int index) const {
    return tensor(name).ne[index];
}

slip_tensor_file::slip_tensor_file(const std::string & path, uint64_t offset) :
    path_(path), offset_(offset), file_(std::filesystem::u8path(path), std::ios::binary) {}

void slip_tensor_file::read(size_t at, size_t n, char * into) {
    file_.seekg(static_cast<std::streamoff>(offset_ + at));
    if (!file_.read(into, static_cast<std::streamsize>(n))) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path_ + "` cannot be read.", "Convert the model again.");
    }
}

slip_tensor_file slip_gguf_file::open(const std::string & name) const {
    tensor(name);
    const part & from = *part_with(name);
    return { from.path, gguf_get_data_offset(from.file.get()) +
        gguf_get_tensor_offset(from.file.get(), gguf_find_tensor(from.file.get(), name.c_str())) };
}

void slip_gguf_file::read(const std::string & name, ggml_tensor * into) const {
    const size_t size = ggml_nbytes(&tensor(name));
    slip_tensor_file file = open(name);
    std::vector<char> piece(std::min<size_t>(size, 16 << 20));
    for (size_t done = 0; done < size; done += piece.size()) {
        const size_t n = std::min(piece.size(), size - done);
        file.read(done, n, piece.data());
        ggml_backend_tensor_set(into, piece.data(), done, n);
    }
}

int64_t slip_gguf_file::n_tokens() const {
    const int64_t id = require(k_tokens);
    require_type(k_tokens, gguf_get_kv_type(keys(), id) == GGUF_TYPE_ARRAY && gguf_get_arr_type(keys(), id) == GGUF_TYPE_STRING,
        "an array of texts");
    return gguf_get_arr_n(keys(), id);
}

int64_t slip_gguf_file::find_token(const std::string & text) const {
    const int64_t count = n_tokens(), key = require(k_tokens);
    for (int64_t i = 0; i < count; ++i) {
        if (text == gguf_get_arr_str(keys(), key, i)) {
            return i;
        }
    }
    return -1;
}

bool slip_gguf_file::same_tokens(const slip_gguf_file & other) const {
    const int64_t count = n_tokens();
    if (count != other.n_tokens()) {
        return false;
    }
    const int64_t mine = require(k_tokens), theirs = other.require(k_tokens);
    for (int64_t i = 0; i < count; ++i) {
        if (std::strcmp(gguf_get_arr_str(keys(), mine, i), gguf_get_arr_str(other.keys(), theirs, i)) != 0) {
            return false;
        }
    }
    return true;
}
