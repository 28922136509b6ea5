//===- CommandMemoryTest.cpp - What lives when in a function of commands ---------------===//
#include "ds/Passes/CommandMemory.h"
#include "ds/Passes/ComputeMemory.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ds;

namespace {

using Bytes = std::vector<int64_t>;

// A state and an input of 64 bytes. %a, of 64, is sent to the host while %b, of 128, is made from a gathered
// weight of 128, which is read twice; that %a was sent compute knows before the last launch.
const char *const kCommands = R"mlir(
!part = !ds.buffer<tensor<8xf32>, [1], device>
!a = !ds.buffer<tensor<16xf32>, [1], device>
!w = !ds.buffer<tensor<32xf32>, [1], device>
!host = !ds.buffer<tensor<16xf32>, [1], host>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xf32>
ds.kernel @make inputs 1 buffers [!a, !a] {
^bb0(%x: tensor<16xf32>):
  %y = ds.neg %x : tensor<16xf32>
  ds.yield %y : tensor<16xf32>
}
ds.kernel @read inputs 1 buffers [!w, !w] {
^bb0(%x: tensor<32xf32>):
  %y = ds.neg %x : tensor<32xf32>
  ds.yield %y : tensor<32xf32>
}
func.func @f(%p: !a {ds.state = @p}, %x: !a {ds.input = "x"}) {
  %a = ds.alloc activations : !a
  %part = ds.view %a offset 8 : !a -> !part
  %h = ds.alloc activations : !host
  %b = ds.alloc activations : !w
  %w = ds.alloc communication : !w
  ds.launch @make ins(%x) outs(%a) on compute : (!a) -> !a
  ds.transfer %a to %h on to_host : !a, !host
  ds.record 0 on to_host
  ds.communicate all_gather ins(%p) outs(%w) along dp carries parameter on gather : (!a) -> !w
  ds.record 1 on gather
  ds.wait 1 on compute
  ds.launch @read ins(%w) outs(%b) on compute : (!w) -> !w
  ds.launch @make ins(%x) outs(%p) on compute : (!a) -> !a
  ds.wait 0 on compute
  ds.launch @read ins(%w) outs(%w) on compute : (!w) -> !w
  return
}
)mlir";

class CommandMemory : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<DsDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kCommands, &context);
    ASSERT_TRUE(module);
    func = *module->getOps<func::FuncOp>().begin();
  }
  Bytes liveBytes(LivesUntil until, Space space) { return getMemory(func, until).liveBytes(uint32_t(space)); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
};

TEST_F(CommandMemory, LivesUntilComputeKnowsThatItWasRead) {
  // Commands:  make  send  rec  gather rec  wait  read  make  wait  read
  EXPECT_EQ(liveBytes(LivesUntil::Known, Space::Device),
            (Bytes{64, 64, 64, 192, 192, 192, 320, 192, 192, 128}));
  EXPECT_EQ(liveBytes(LivesUntil::Known, Space::Host), (Bytes{0, 64, 64, 64, 64, 64, 64, 64, 64, 0}));
}

TEST_F(CommandMemory, LivesUntilTheLastHasTouchedIt) {
  EXPECT_EQ(liveBytes(LivesUntil::Touched, Space::Device),
            (Bytes{64, 64, 0, 128, 128, 128, 256, 128, 128, 128}));
  EXPECT_EQ(liveBytes(LivesUntil::Touched, Space::Host), (Bytes{0, 64, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(CommandMemory, NeedsWhatIsGatheredWhereItIsRead) {
  EXPECT_EQ(liveBytes(LivesUntil::Needed, Space::Device), (Bytes{64, 0, 0, 0, 0, 0, 256, 0, 0, 128}));
}

TEST_F(CommandMemory, CountsAViewAsItsAllocation) {
  for (Operation &op : func.getBody().front())
    if (auto launch = dyn_cast<LaunchOp>(op))
      if (launch.getOutputs()[0] == launch.getInputs()[0]) // the last writes a part of %a instead
        launch->setOperand(1, (*func.getOps<ViewOp>().begin()).getResult());
  EXPECT_EQ(liveBytes(LivesUntil::Touched, Space::Device),
            (Bytes{64, 64, 64, 192, 192, 192, 320, 192, 192, 192}));
}

TEST_F(CommandMemory, LeavesRoomBesideStatesAndInputs) {
  ComputeMemory memory(func, 500);
  EXPECT_EQ(getPermanentBytes(func, Space::Device), 128);
  EXPECT_EQ(memory.getCommands().size(), 4u);
  EXPECT_EQ(memory.getLiveBytes(), (Bytes{192, 448, 320, 256}));
  EXPECT_EQ(memory.roomAt(1), 52);
  memory.hold(1, 30);
  EXPECT_EQ(memory.roomAt(1), 22);
  EXPECT_EQ(ComputeMemory(func).roomAt(1), std::numeric_limits<int64_t>::max());
  // Without what the gather brings, which is to be placed.
  DenseSet<Operation *> gathered;
  for (AllocOp alloc : func.getOps<AllocOp>())
    if (alloc.getCategory() == AllocCategory::Communication)
      gathered.insert(alloc);
  EXPECT_EQ(ComputeMemory(func, 500, gathered).getLiveBytes(), (Bytes{192, 320, 192, 128}));
}

} // namespace
