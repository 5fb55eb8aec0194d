// What the target's device can choose by itself instead of common_sampler_sample(): see llama_set_out_argmax() and
// llama_set_sampler(). Included by sampling.h; the rest is sampling-device-impl.h, which knows what one is.

#pragma once

struct common_sampler;

// true if each sample is nothing but the likeliest token: temperature 0 and nothing that changes the order or asks for more
bool common_sampler_is_greedy(const struct common_sampler * gsmpl);

// true if a backend can take over the whole chain: temperature, top-k, top-p and min-p, and nothing else
bool common_sampler_is_simple(const struct common_sampler * gsmpl);

// LLAMA_SPEC_GPU_SAMPLE is set: sample on the device what can be sampled there
bool common_sampler_prefers_device();

// while on, samples are the tokens that the context chose itself, see llama_set_out_argmax()
void common_sampler_set_chosen(struct common_sampler * gsmpl, bool value);
bool common_sampler_get_chosen(const struct common_sampler * gsmpl);
