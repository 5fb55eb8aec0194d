// What llama.cpp takes for granted of a file: it would end the process instead of the load, or read what is not there.

#pragma once

#include "gguf_file.h"

// Of a target ("qwen35") or a drafter ("dflash"). Throws SLIP_ERROR_MODEL or SLIP_ERROR_FILE, naming key or tensor.
void slip_check_header(const slip_gguf_file & file, const std::string & architecture);

// Of either: that there is one, of the kind that Qwen has. Throws SLIP_ERROR_FILE.
void slip_check_vocabulary(const slip_gguf_file & file);
