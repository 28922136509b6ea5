//===- GivenPair.h - A pair of Gloo's on a connection that it is given --------------===//
//
// Gloo has no way to hand a pair a connection: each listens at a port of its own and takes the first who
// calls, whoever that is. Here the first is this process itself. Once the pair has taken that call, its
// descriptor is known, and what stands behind a descriptor can be replaced (dup2), by one that is silent and
// later by the connection that is given. Gloo is told of the new file as of any (registerDescriptor). The old
// one is forgotten when nobody holds it any more, which may be later: until then it is watched for nothing.
//
// The price: this relies on a pair being one descriptor that is watched by its number, as in the packaged
// Gloo. Where that is not so, no pair is made, and the error says so.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_GLOO_GIVENPAIR_H
#define DS_LIB_RUNTIME_COMM_GLOO_GIVENPAIR_H

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <cstdint>

namespace ds::rt {

class GivenPair {
public:
  /// Makes the pair of `context` for `peer`. Throws where the first to call was a stranger, or on failure.
  GivenPair(gloo::transport::tcp::Device &device, gloo::transport::Context &context, uint32_t peer);

  /// Gives the pair its connection, which is closed where that fails. Once, and not after the pair was
  /// closed.
  void take(int socket);

private:
  void replaceBy(int file);

  gloo::transport::tcp::Device &device;
  gloo::transport::tcp::Handler *handler; ///< the pair, as its device knows it
  int descriptor;                         ///< the pair's
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_GLOO_GIVENPAIR_H
