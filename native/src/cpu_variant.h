// The CPU's backend where it is not built in: variants for different processors, in libraries beside this one.

#pragma once

// Loads the variant that suits this processor best, or the one that the environment names in SLIPSTREAM_CPU.
// Throws SLIP_ERROR_DEVICE where there is none, and where that one is missing or cannot be executed here.
void slip_load_cpu();
