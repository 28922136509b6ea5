//===- Machine.cpp - For what a module is compiled, as an attribute -----------------===//
#include "ds/Dialect/Machine.h"

#include "FieldText.h"
#include "ds/Dialect/Ds.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;

namespace mlir::ds {
template <class Visitor>
static void visitFields(Visitor &visitor, MemoryLimits &memory) {
  visitor("device", memory.device);
  visitor("host", memory.host);
}

template <class Visitor>
static void visitFields(Visitor &visitor, Machine &machine) {
  visitor("target", machine.target);
  visitor("cluster", machine.cluster);
  visitor("threads", machine.threads);
  visitor("memory", machine.memory);
  visitor("attention_bytes", machine.attentionBytes);
  visitor("fast_attention", machine.hasFastAttention);
  visitor("node_local_saves", machine.hasNodeLocalSaves);
}
} // namespace mlir::ds

llvm::hash_code mlir::ds::hash_value(const Machine &machine) { return FieldHasher::hash(machine); }

static MachineAttr lookup(ModuleOp module) {
  return module->getAttrOfType<MachineAttr>(DsDialect::kMachineAttr);
}

Machine mlir::ds::getMachine(ModuleOp module) {
  MachineAttr machine = lookup(module);
  return machine ? machine.getMachine() : Machine();
}

StringRef mlir::ds::getTarget(ModuleOp module) {
  MachineAttr machine = lookup(module);
  return machine ? StringRef(machine.getMachine().target) : "cpu";
}

bool mlir::ds::isForCuda(ModuleOp module) { return getTarget(module).starts_with("cuda:"); }

LogicalResult mlir::ds::setMachine(ModuleOp module, const Machine &machine) {
  if (machine == Machine()) {
    module->removeAttr(DsDialect::kMachineAttr);
    return success();
  }
  auto attribute = MachineAttr::getChecked([&] { return module.emitError(); }, module.getContext(), machine);
  if (!attribute)
    return failure();
  module->setAttr(DsDialect::kMachineAttr, attribute);
  return success();
}

Attribute MachineAttr::parse(AsmParser &parser, Type) {
  Machine machine;
  if (FieldReader(parser, DsDialect::kMachineAttr).parse(machine, AsmParser::Delimiter::LessGreater))
    return {};
  return parser.getChecked<MachineAttr>(parser.getContext(), machine);
}

void MachineAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer, getContext()).print(getMachine(), '<', '>');
}

/// Verifies that `value` is at least `least`.
static LogicalResult verifyLeast(function_ref<InFlightDiagnostic()> emitError, StringRef key, int64_t value,
                                 int64_t least) {
  if (value >= least)
    return success();
  return emitError() << DsDialect::kMachineAttr << " expects at least " << least << " for " << key
                     << ", but got " << value;
}

LogicalResult MachineAttr::verify(function_ref<InFlightDiagnostic()> emitError, Machine machine) {
  if (failed(verifyLeast(emitError, "threads", machine.threads, 1)) ||
      failed(verifyLeast(emitError, "memory.device", machine.memory.device.value_or(1), 1)) ||
      failed(verifyLeast(emitError, "memory.host", machine.memory.host.value_or(1), 1)) ||
      failed(verifyLeast(emitError, "attention_bytes", machine.attentionBytes, 0)))
    return failure();
  StringRef version = machine.target;
  const bool isCuda = version.consume_front("cuda:sm_") && !version.empty() &&
                      llvm::all_of(version, [](char c) { return llvm::isDigit(c); });
  if (isCuda || machine.target == "cpu")
    return success();
  return emitError() << DsDialect::kMachineAttr << " expects cpu or as cuda:sm_90 for target, but got \""
                     << machine.target << '"';
}
