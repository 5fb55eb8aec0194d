// The one exception of this library; api.cpp turns it into a slip_error.

#pragma once

#include "slipstream.h"

#include <stdexcept>
#include <string>

struct slip_failure : std::runtime_error {
    slip_failure(slip_status status, const std::string & message, const std::string & remedy = "") :
        std::runtime_error(message), status(status), remedy(remedy) {}

    slip_status status;
    std::string remedy;
};
