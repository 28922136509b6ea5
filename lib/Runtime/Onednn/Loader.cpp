//===- Loader.cpp - The side of the oneDNN border that needs no oneDNN ---------===//
//
// Finds the plugin. Linked by ds-opt as well, so nothing here may need more than the program struct.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Onednn/OnednnPlugin.h"

#include "Process/PluginFile.h"
#include "ds/Support/Align.h"
#include "ds/Support/RunTool.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace ds::rt {
namespace {

/// Whether there are addresses left for what oneDNN generates and keeps: where it gets none it ends the
/// process
/// (`ulimit -v`).
bool hasRoom() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return true;
  constexpr size_t kRoom = size_t(8) << 20;
  void *const probe = ::mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return probe != MAP_FAILED && ::munmap(probe, kRoom) == 0;
}

} // namespace

Result<const OnednnApi *> openOnednn() {
  static const Result<const OnednnApi *> api =
      openApi<OnednnApi>({"libds-onednn.so", "dsOnednn", "matrix products and convolutions need",
                          "install oneDNN (libdnnl2) and keep the plugin in ../lib of the tool"},
                         kOnednnAbi);
  if (api && !hasRoom())
    return outOfMemory();
  return api;
}

Result<uint64_t> matmulScratchpadBytes(const MatmulDesc &desc, uint32_t threads) {
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  char message[256] = "";
  const uint64_t bytes = (*api)->scratchpadBytes(&desc, threads, message, sizeof message);
  if (bytes == UINT64_MAX)
    return Error{ExitCode::Device, std::string("oneDNN: ") + message, ""};
  return alignTo(bytes, 64);
}

} // namespace ds::rt
