//===- CheckpointFuzz.cpp - Checkpoints of strangers under libFuzzer ----------------===//
//
// The first byte chooses what the rest is: the text of a manifest behind a digest that fits, or the only file
// of a checkpoint whose manifest has the digests of it. What is accepted is read to its last element.
//
//===---------------------------------------------------------------------------===//

#include "ds/Runtime/Checkpoint/Checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

using namespace ds;
using namespace ds::rt;

namespace {

/// A manifest is read, or refused; what was read is spelt and read again.
void readManifestBody(const std::string &body) {
  const Result<Manifest> manifest =
      parseManifest("{\"digest\": \"" + digestOf(std::as_bytes(std::span(body))) + "\",\n" + body, "m");
  if (manifest && !parseManifest(spellManifest(*manifest), "again"))
    abort();
}

Manifest manifestOf(const std::string &file) {
  Manifest manifest;
  manifest.step = 1;
  manifest.chunkBytes = 64;
  manifest.tensors = {{"a", Role::Parameter, "", FileDType::F32, {3, 4}, {"b"}, true, {}, FileDType::F32},
                      {"c", Role::Scalar, "", FileDType::I64, {}, {}, false, {}, FileDType::I64}};
  manifest.files = {{"f", file.size(), {}}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(file));
  for (size_t at = 0; at < bytes.size(); at += manifest.chunkBytes)
    manifest.files[0].digests.push_back(
        digestOf(bytes.subspan(at, std::min<size_t>(manifest.chunkBytes, bytes.size() - at))));
  return manifest;
}

void readFile(const std::string &content) {
  static const std::string directory = [] {
    char name[] = "/tmp/ds-checkpoint-fuzz-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  std::ofstream(directory + "/f", std::ios::binary) << content;
  std::ofstream(directory + "/manifest.json", std::ios::binary) << spellManifest(manifestOf(content));
  const Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint)
    return;
  std::vector<std::byte> values(48); // of 12 floats, or of a number
  for (const CheckpointTensor &tensor : checkpoint->manifest().tensors)
    if (!checkpoint->read(tensor, 0, tensor.shape.empty() ? 1 : 12, values.data()))
      abort(); // its digests are those of its bytes
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size == 0)
    return 0;
  const std::string rest(reinterpret_cast<const char *>(bytes) + 1, size - 1);
  if (bytes[0] % 2 == 0)
    readManifestBody(rest);
  else
    readFile(rest);
  return 0;
}
