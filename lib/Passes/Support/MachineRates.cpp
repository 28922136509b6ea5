//===- MachineRates.cpp - The rates of the machine of a module -----------------------===//
//
// A module names its cluster, whose file is large; many passes ask for its rates, some at once for several
// functions. The dialect of a context that was asked to keeps what it has read.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Machine.h"
#include "ds/Passes/CommandCost.h"

#include "mlir/IR/DialectInterface.h"

#include <map>
#include <mutex>

using namespace mlir;
using namespace mlir::ds;
namespace cost = ::ds::cost;

using Read = ::ds::Result<::ds::config::Cluster>;

namespace {
/// The clusters that were read in one context.
class KnownClusters : public DialectInterface::Base<KnownClusters> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KnownClusters)
  explicit KnownClusters(Dialect *dialect) : Base(dialect) {}

  /// Results stay where they are until the context ends.
  const Read &read(const std::string &name) const {
    std::lock_guard lock(mutex);
    auto known = clusters.find(name);
    return known != clusters.end() ? known->second
                                   : clusters.emplace(name, ::ds::config::readCluster(name)).first->second;
  }

private:
  mutable std::mutex mutex;
  mutable std::map<std::string, Read> clusters;
};
} // namespace

void mlir::ds::registerRates(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, DsDialect *dialect) { dialect->addInterfaces<KnownClusters>(); });
}

FailureOr<cost::Rates> mlir::ds::readRates(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  const std::string name = getMachine(module).cluster;
  const auto *known =
      op->getContext()->getLoadedDialect<DsDialect>()->getRegisteredInterface<KnownClusters>();
  const Read read = known ? known->read(name) : ::ds::config::readCluster(name);
  if (read)
    return cost::Rates(*read);
  return module.emitError() << DsDialect::kMachineAttr << " expects a cluster that can be read, but got \""
                            << name << "\": " << read.error().message,
         failure();
}
