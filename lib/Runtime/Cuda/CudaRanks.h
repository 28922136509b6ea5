//===- CudaRanks.h - The other ranks of a program on a GPU ------------------------------===//
//
// A collective of which one rank does not take part never ends. So a rank with peers does not simply wait: it
// looks again and again whether a peer or NCCL tells of a failure, and whether the marks still move. When
// they have stood still for a part of the time-out it says so, and for all of it, names the collective that
// it stands at, has all write their stacks, tells them, and ends its own collectives.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDARANKS_H
#define DS_LIB_RUNTIME_CUDA_CUDARANKS_H

#include "CudaGraphs.h"
#include "CudaMemory.h"
#include "CudaStreams.h"
#include "CudaTelemetry.h"
#include "Nccl.h"

namespace ds::rt::cuda {

/// What the ranks' collectives run on; it outlives the ranks.
struct CudaParts {
  const CudaContext &context;
  CudaMemory &memory;
  CudaStreams &streams;
  CudaTelemetry &telemetry;
  CudaGraphs &graphs;
};

class CudaRanks {
public:
  CudaRanks(const CudaParts &on, const CudaOptions &options) : on(on), options(options) {}

  /// Takes the program, which outlives the ranks, and the groups of the collectives of all its stages.
  void use(const Program &loaded, std::vector<GroupUse> uses);

  /// The ranks on NCCL, connected when this is first called: by all of them, or by none.
  Result<NcclRanks *> connect();
  /// The same where the program has collectives at all: a stage without them has bound none, but others wait
  /// for it.
  Status connectAll();
  /// The ranks as choosing algorithms has to agree with them; null for one.
  RankGroup *group() const { return program->world > 1 ? options.ranks : nullptr; }

  /// Waits for all work, no longer than the time-out for that of others.
  Status synchronize();

  /// Waits for the work of a run that went well, and drops the graphs.
  void leave();
  /// Leaves the other ranks, once nothing that is bound needs them; false where an abort has not come back:
  /// nothing of the device may be waited for or freed then.
  bool end();

private:
  Status connectStages();
  Status watch();
  std::string waitedFor() const;

  const CudaParts on;
  const CudaOptions options;
  const Program *program = nullptr;
  std::vector<GroupUse> groups;
  std::unique_ptr<NcclRanks> ranks; ///< null until a collective of several ranks is bound
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDARANKS_H
