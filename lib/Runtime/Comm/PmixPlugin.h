//===- PmixPlugin.h - The launcher's side of the rendezvous, opened on demand ----===//
//
// libds-pmix.so is the only file that links PMIx. As with Gloo, the border is a C++ interface behind one C
// entry point, `dsPmix`.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_PMIXPLUGIN_H
#define DS_LIB_RUNTIME_COMM_PMIXPLUGIN_H

#include <cstdint>
#include <string>

namespace ds::rt {

inline constexpr uint32_t kPmixAbi = 1;

struct PmixJob {
  uint32_t rank, world;
  bool oneHost; ///< all ranks run on this machine
};

struct PmixApi {
  uint32_t abi;
  /// Joins the job. False (and `error`) if the launcher does not answer. Calling it again changes nothing.
  bool (*join)(PmixJob &job, std::string &error);
  /// Makes `card` known to all ranks.
  bool (*publish)(const std::string &card, std::string &error);
  /// The card of a rank, if it has come within a few milliseconds; a question stays asked between calls.
  bool (*lookUp)(uint32_t rank, std::string &card);
  /// Leaves the job after a run that went well.
  void (*leave)();
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_PMIXPLUGIN_H
