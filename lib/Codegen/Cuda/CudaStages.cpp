//===- CudaStages.cpp - Whether one launch computes both stages of a kernel ----===//

#include "CudaMapping.h"
#include "KernelBody.h"
#include "ds/Codegen/KernelStages.h"

namespace mlir::ds {
using namespace codegen;

bool canLaunchStages(KernelOp kernel, std::string &reason) {
  SmallVector<KernelBody, 2> sources = readStages(kernel);
  SmallVector<std::unique_ptr<LoopNest>, 2> nests;
  for (const KernelBody &source : sources) {
    nests.push_back(buildLoopNest(source.body, &source.layout, reason));
    if (!nests.back())
      return false;
  }
  if (nests.size() != 2) {
    reason = "no stage reads what another stores";
    return false;
  }
  CudaMapping mapping = mapToCuda(*nests[0]);
  if (mapParts(*nests[0], mapping, *nests[1]))
    return true;
  reason = "strips of columns of the stages are not the same";
  return false;
}

} // namespace mlir::ds
