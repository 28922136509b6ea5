//===- Digest.cpp - What bytes are recognised by ------------------------------------===//

#include "ds/Runtime/Checkpoint/Digest.h"

#include <xxhash.h>

#include <cstdio>
#include <new>

namespace ds::rt {

static std::string spell(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

std::string digestOf(std::span<const std::byte> bytes) {
  return spell(XXH3_128bits(bytes.data(), bytes.size()));
}

struct Digester::State {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash{XXH3_createState(), XXH3_freeState};
};

Digester::Digester() : state(std::make_unique<State>()) {
  if (!state->hash)
    throw std::bad_alloc();
  XXH3_128bits_reset(state->hash.get());
}

void Digester::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state->hash.get(), bytes.data(), bytes.size());
}

std::string Digester::finish() {
  std::string text = spell(XXH3_128bits_digest(state->hash.get()));
  XXH3_128bits_reset(state->hash.get());
  return text;
}

Digester::Digester(Digester &&) noexcept = default;
Digester::~Digester() = default;

} // namespace ds::rt
