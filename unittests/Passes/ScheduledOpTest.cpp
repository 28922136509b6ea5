//===- ScheduledOpTest.cpp - What commands say of themselves -------------------------===//
#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ds;
using ::ds::rt::CommandKind;

namespace {

constexpr const char *kCommandsOfEachKind = R"(
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
!scratch = !ds.buffer<tensor<64xi8>, [1], device>
!host = !ds.buffer<tensor<4xf32>, [1], host>
!stored = !ds.buffer<tensor<4xf32>, [1], nvme>
ds.mesh @mesh axes [dp = 2]
ds.kernel @kernel inputs 1 buffers [!part, !part] {
^bb0(%x: tensor<4xf32>):
  %e = ds.exp %x : tensor<4xf32>
  %n = ds.neg %e : tensor<4xf32>
  ds.yield %n : tensor<4xf32>
}
func.func @f(%a: !part, %b: !whole, %s: !scratch, %h: !host, %d: !stored) {
  ds.launch @kernel ins(%a) outs(%a) on compute : (!part) -> !part
  ds.call matmul(%a, %a, %b) writes [2] params [0, 0, 0, 0] workspace(%s : !scratch) on compute {flops = 64 : i64} : !part, !part, !whole
  ds.communicate all_gather ins(%a) outs(%b) along dp on gather : (!part) -> !whole
  ds.transfer %a to %h on to_host : !part, !host
  ds.transfer %h to %d on storage : !host, !stored
  ds.record 3 on compute
  ds.wait 3 on gather
  return
}
)";

/// A command in numbers and words.
struct Said {
  CommandKind kind;
  StreamKind stream;
  std::string label;
  int64_t flops, traffic;
  std::optional<int64_t> recorded, awaited;

  bool operator==(const Said &) const = default;
};

void PrintTo(const Said &said, std::ostream *out) {
  *out << said.label << ": kind " << int(said.kind) << ", stream " << int(said.stream) << ", " << said.flops
       << " flops, " << said.traffic << " bytes, events " << said.recorded.value_or(-1) << " and "
       << said.awaited.value_or(-1);
}

TEST(ScheduledOp, EveryOpOnAStreamIsOne) {
  MLIRContext context;
  context.loadDialect<DsDialect>();
  unsigned commands = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    bool isOnStream =
        llvm::any_of(name.getAttributeNames(), [](StringAttr each) { return each == "stream"; });
    EXPECT_EQ(isOnStream, name.hasInterface<ScheduledOpInterface>()) << name.getStringRef().str();
    commands += isOnStream;
  }
  EXPECT_GE(commands, 6u);
}

TEST(ScheduledOp, SaysItsKindItsLabelAndItsTraffic) {
  MLIRContext context;
  context.loadDialect<DsDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(kCommandsOfEachKind, &context);
  ASSERT_TRUE(module);
  SymbolTable symbols(*module);
  std::vector<Said> said;
  for (auto op : symbols.lookup<func::FuncOp>("f").getOps<ScheduledOpInterface>())
    said.push_back({op.getCommandKind(), op.getStream(), op.getLabel(symbols), op.getCountedFlops(),
                    op.getTraffic(), op.getRecordedEvent(), op.getAwaitedEvent()});
  const std::vector<Said> expected = {
      {CommandKind::Kernel, StreamKind::Compute, "neg", 0, 2 * 16, {}, {}},
      {CommandKind::Library, StreamKind::Compute, "matmul", 64, 16 + 16 + 32, {}, {}}, // no workspace
      {CommandKind::Collective, StreamKind::Gather, "all_gather", 0, 16, {}, {}},      // to one other rank
      {CommandKind::Copy, StreamKind::ToHost, "transfer", 0, 2 * 16, {}, {}},
      {CommandKind::Storage, StreamKind::Storage, "transfer", 0, 2 * 16, {}, {}},
      {CommandKind::RecordEvent, StreamKind::Compute, "record", 0, 0, 3, {}},
      {CommandKind::WaitEvent, StreamKind::Gather, "wait", 0, 0, {}, 3},
  };
  EXPECT_EQ(said, expected);
  for (auto op : symbols.lookup<func::FuncOp>("f").getOps<ScheduledOpInterface>())
    EXPECT_EQ(op.isEvent(), isa<RecordOp>(*op) || isa<WaitOp>(*op));
}

} // namespace
