//===- ForeignDump.cpp - Prints what a foreign checkpoint shows -----------------===//
//
//     ds-foreign-dump FOLDER CHUNK OUT
//
// Prints the view of FOLDER as JSON and writes the elements of all tensors to OUT, one after another, read in
// pieces of CHUNK elements (0: each tensor at once). Exits as the tools do.
//
//===---------------------------------------------------------------------------===//

#include "ds/Runtime/Foreign/ForeignCheckpoint.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace ds;
using namespace ds::rt;

static int report(const Error &error) {
  fprintf(stderr, "error: %s\nhint: %s\n", error.message.c_str(), error.hint.c_str());
  return int(error.code);
}

static nlohmann::json numbers(std::span<const NamedNumber> list) {
  nlohmann::json out = nlohmann::json::object();
  for (const NamedNumber &number : list)
    out[number.name] = number.value;
  return out;
}

static nlohmann::json describe(const ForeignCheckpoint &checkpoint) {
  nlohmann::json out = {{"description", checkpoint.describe()},
                        {"folder", checkpoint.folder()},
                        {"optimizer", checkpoint.optimizer()},
                        {"scheduler", numbers(checkpoint.scheduler())},
                        {"tied", nlohmann::json::array()}};
  const ForeignProgress &progress = checkpoint.progress();
  auto set = [&](const char *name, const std::optional<int64_t> &value) {
    if (value)
      out["progress"][name] = *value;
  };
  set("steps", progress.steps), set("skippedSteps", progress.skippedSteps);
  set("optimizerSteps", progress.optimizerSteps), set("samples", progress.samples),
      set("tokens", progress.tokens);
  if (const std::optional<ForeignLossScale> &scale = checkpoint.lossScale())
    out["lossScale"] = {
        {"scale", scale->scale}, {"isDynamic", scale->isDynamic}, {"numbers", numbers(scale->numbers)}};
  for (const std::vector<std::string> &group : checkpoint.tied())
    out["tied"].push_back(group);
  static constexpr const char *kRoles[] = {"parameter", "frozen", "buffer"};
  for (const ForeignTensor &tensor : checkpoint.tensors())
    out["tensors"].push_back({{"name", tensor.name},
                              {"slot", tensor.slot},
                              {"dtype", spell(tensor.dtype)},
                              {"shape", tensor.shape},
                              {"role", kRoles[unsigned(tensor.role)]},
                              {"notes", numbers(tensor.notes)}});
  return out;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return int(ExitCode::Usage);
  Result<ForeignCheckpoint> checkpoint = ForeignCheckpoint::open(argv[1]);
  if (!checkpoint)
    return report(checkpoint.error());
  uint64_t chunk = strtoull(argv[2], nullptr, 10);
  std::ofstream file(argv[3], std::ios::binary);
  for (const ForeignTensor &tensor : checkpoint->tensors()) {
    uint64_t count = tensor.numElements(), width = bitSize(tensor.dtype) / 8;
    for (uint64_t first = 0; first < count;) {
      uint64_t taken = chunk ? std::min(chunk, count - first) : count;
      std::vector<char> bytes(taken * width);
      if (Status status = checkpoint->read(tensor, first, taken, bytes.data()); !status)
        return report(status.error());
      file.write(bytes.data(), std::streamsize(bytes.size()));
      first += taken;
    }
  }
  printf("%s\n", describe(*checkpoint).dump().c_str());
  return 0;
}
