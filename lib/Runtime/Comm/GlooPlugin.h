//===- GlooPlugin.h - Gloo's side of the data plane, opened on demand ------------===//
//
// libds-gloo.so is the only file that links Gloo. Plugin and tool come from one build and share a compiler
// and a C++ library, so the border is a C++ interface (Transport.h) behind one C entry point, `dsGloo`.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_GLOOPLUGIN_H
#define DS_LIB_RUNTIME_COMM_GLOOPLUGIN_H

#include "Transport.h"

namespace ds::rt {

inline constexpr uint32_t kGlooAbi = 2;

struct GlooOptions {
  uint32_t rank, world;
};

struct GlooApi {
  uint32_t abi;
  /// A transport without connections; null (and `error`) on failure.
  SocketTransport *(*create)(const GlooOptions &options, std::string &error);
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_GLOOPLUGIN_H
