//===- SegmentMemoryTest.cpp - What a step's values take ---------------------------===//
#include "ResidencyModel.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
namespace dialect = mlir::ds;

namespace {

// What the last micro-step adds to the gradient so far: 64 values, of which the update reads the sum over
// ranks.
const char *const kLast = R"mlir(
  func.func @last(%x: tensor<4x64xf32> {ds.input = "x"}, %y: tensor<4xf32> {ds.input = "y"},
                  %kept: tensor<64xf32> {ds.state = @w.grad}, %w: tensor<64xf32> {ds.state = @w})
      -> (tensor<64xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %row = ds.reshape %y : tensor<4xf32> -> tensor<1x4xf32>
    %new = ds.matmul %row, %x {ds.work = #ds.work<backward>} : tensor<1x4xf32>, tensor<4x64xf32> -> tensor<1x64xf32>
    %flat = ds.reshape %new : tensor<1x64xf32> -> tensor<64xf32>
    %local = ds.add %kept, %flat {ds.work = #ds.work<backward>} : tensor<64xf32>
    %sum = ds.all_reduce sum %local along dp carries bucket {ds.work = #ds.work<backward>} : tensor<64xf32>
    %next = ds.sub %w, %sum {ds.work = #ds.work<update>} : tensor<64xf32>
    return %next : tensor<64xf32>
  })mlir";

// The same micro-step before the last one: the sum is the gradient so far of the next.
const char *const kMiddle = R"mlir(
  func.func @middle(%x: tensor<4x64xf32> {ds.input = "x"}, %y: tensor<4xf32> {ds.input = "y"},
                    %kept: tensor<64xf32> {ds.state = @w.grad})
      -> (tensor<64xf32> {ds.state = @w.grad}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %row = ds.reshape %y : tensor<4xf32> -> tensor<1x4xf32>
    %new = ds.matmul %row, %x {ds.work = #ds.work<backward>} : tensor<1x4xf32>, tensor<4x64xf32> -> tensor<1x64xf32>
    %flat = ds.reshape %new : tensor<1x64xf32> -> tensor<64xf32>
    %local = ds.add %kept, %flat {ds.work = #ds.work<backward>} : tensor<64xf32>
    return %local : tensor<64xf32>
  })mlir";

// A weight of 2 MiB that is gathered for a product of forward and, right behind it, for one of backward.
const char *const kGathers = R"mlir(
  ds.state @p role(parameter) trainable shards [dp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1024x1024xbf16>
  func.func @last(%x: tensor<8x1024xbf16> {ds.input = "x"}, %p: tensor<512x1024xbf16> {ds.state = @p})
      -> (tensor<8x1024xbf16> {ds.state = @out}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %first = ds.all_gather %p along dp carries parameter {ds.work = #ds.work<forward>} : tensor<512x1024xbf16> -> tensor<1024x1024xbf16>
    %y = ds.matmul %x, %first {ds.work = #ds.work<forward>} : tensor<8x1024xbf16>, tensor<1024x1024xbf16> -> tensor<8x1024xbf16>
    %second = ds.all_gather %p along dp carries parameter {ds.work = #ds.work<backward>} : tensor<512x1024xbf16> -> tensor<1024x1024xbf16>
    %z = ds.matmul %y, %second {ds.work = #ds.work<backward>} : tensor<8x1024xbf16>, tensor<1024x1024xbf16> -> tensor<8x1024xbf16>
    return %z : tensor<8x1024xbf16>
  }
  ds.state @out role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x1024xbf16>)mlir";

// The same weight; backward reads what forward makes of it before it gathers the weight again.
const char *const kEarly = R"mlir(
  ds.state @p role(parameter) trainable shards [dp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1024x1024xbf16>
  func.func @last(%x: tensor<8x1024xbf16> {ds.input = "x"}, %p: tensor<512x1024xbf16> {ds.state = @p})
      -> (tensor<8x1024xbf16> {ds.state = @out}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %first = ds.all_gather %p along dp carries parameter {ds.work = #ds.work<forward>} : tensor<512x1024xbf16> -> tensor<1024x1024xbf16>
    %y = ds.matmul %x, %first {ds.work = #ds.work<forward>} : tensor<8x1024xbf16>, tensor<1024x1024xbf16> -> tensor<8x1024xbf16>
    %u = ds.mul %y, %y {ds.work = #ds.work<backward>} : tensor<8x1024xbf16>
    %second = ds.all_gather %p along dp carries parameter {ds.work = #ds.work<backward>} : tensor<512x1024xbf16> -> tensor<1024x1024xbf16>
    %z = ds.matmul %u, %second {ds.work = #ds.work<backward>} : tensor<8x1024xbf16>, tensor<1024x1024xbf16> -> tensor<8x1024xbf16>
    return %z : tensor<8x1024xbf16>
  }
  ds.state @out role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x1024xbf16>)mlir";

class SegmentMemory : public testing::Test {
protected:
  /// The memory of the function that `text` has, once it is known what a kernel is, beside the states of a
  /// weight.
  void read(const std::string &text) {
    context.loadDialect<dialect::DsDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(R"mlir(module {
      ds.mesh @mesh axes [dp = 2]
      ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
      ds.state @w.grad role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
    )mlir" + text + "}",
                                         &context);
    ASSERT_TRUE(module);
    PassManager fuse(&context);
    fuse.addNestedPass<func::FuncOp>(dialect::createFuseRegions());
    ASSERT_TRUE(succeeded(fuse.run(*module)));
    func = *module->getOps<func::FuncOp>().begin();
    memory.reset();
    open.clear();
    open.insert({func, dialect::OpenRegions(func.getBody().front())});
    memory.emplace(std::make_shared<dialect::SegmentCommands>(func, open.front().second), rules,
                   SymbolTable(*module));
  }
  /// Of the result of the first `Op`.
  template <typename Op>
  const dialect::ValueMemory &memoryOf() {
    return memory->memories[*memory->find((*func.getOps<Op>().begin())->getResult(0))];
  }

  /// The step's problem, on an H100.
  dialect::ResidencyModel makeModel(const dialect::ResidencyLimits &limits,
                                    const dialect::RecomputePlan &repeats) {
    dialect::Machine machine;
    machine.cluster = "h100-80g";
    EXPECT_TRUE(succeeded(setMachine(*module, machine)));
    rates.emplace(*dialect::readRates(*module));
    descriptions.emplace(*module, open, *rates);
    return {*module, descriptions->of(repeats), *rates, limits};
  }
  /// Of the device at each moment, whatever is chosen.
  std::vector<int64_t> liveBytes(const dialect::ResidencyLimits &limits) {
    return makeModel(limits, {}).problem.spaces[dialect::StepProblem::kDevice].liveBytes;
  }
  /// Whether the gathered weight is among `bytes`, beside the states, which are smaller than another.
  static bool isWhole(int64_t bytes) { return bytes >= 3 * 1024 * 1024; }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
  dialect::OpenSegments open;
  dialect::RecomputeRules rules;
  std::optional<dialect::SegmentMemory> memory;
  std::optional<::ds::cost::Rates> rates;
  std::optional<dialect::StepDescriptions> descriptions; ///< of the last model
};

} // namespace

/// What one kernel makes and reads lies in no memory, and all of it has one moment.
TEST_F(SegmentMemory, HasNothingWithinARegion) {
  read(R"mlir(
  func.func @last(%x: tensor<4x64xf32> {ds.input = "x"}) -> (tensor<4x64xf32> {ds.state = @out})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %e = ds.exp %x {ds.work = #ds.work<forward>} : tensor<4x64xf32>
    %t = ds.tanh %e {ds.work = #ds.work<forward>} : tensor<4x64xf32>
    %y = ds.matmul %t, %t transpose_rhs {ds.work = #ds.work<forward>} : tensor<4x64xf32>, tensor<4x64xf32> -> tensor<4x4xf32>
    %z = ds.matmul %y, %e {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x64xf32> -> tensor<4x64xf32>
    return %z : tensor<4x64xf32>
  }
  ds.state @out role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x64xf32>)mlir");
  const dialect::ValueMemory &exp = memoryOf<dialect::ExpOp>(), &tanh = memoryOf<dialect::TanhOp>();
  EXPECT_EQ(exp.begin, tanh.begin);
  EXPECT_FALSE(exp.isStored); // only backward reads it outside: whether it leaves the region is open
  EXPECT_TRUE(exp.isRead);
  EXPECT_TRUE(tanh.isStored);
  EXPECT_EQ(memory->commands().size(), 3u);
}

/// The sum of a gradient that ends with the update is in its place, and so is what ranks add up of that.
TEST_F(SegmentMemory, AddsToWhatEndsInItsPlace) {
  read(kLast);
  const dialect::ValueMemory &sum = memoryOf<dialect::AddOp>(), &reduced = memoryOf<dialect::AllReduceOp>();
  EXPECT_TRUE(sum.isStored);
  EXPECT_TRUE(sum.isInState);
  ASSERT_GE(reduced.joined, 0);
  EXPECT_EQ(memory->memories[reduced.joined].value, sum.value);
  EXPECT_GE(sum.end, memory->momentOf(*func.getOps<dialect::SubOp>().begin()));
}

/// A gradient that goes on does not end, and a product is in nobody's place.
TEST_F(SegmentMemory, HasMemoryForWhatIsNew) {
  read(kMiddle);
  EXPECT_FALSE(memoryOf<dialect::AddOp>().isInState);
  read(kLast);
  EXPECT_FALSE(memoryOf<dialect::MatmulOp>().isInState);
  EXPECT_LT(memoryOf<dialect::MatmulOp>().joined, 0);
}

/// A gather that is issued ahead does not stand beside what the use before has of the same parameter.
// %p is all of a part of %inner, which is a part of %outer; of %q, twice as large, a window is.
const char *const kJoins = R"mlir(
  func.func @last(%x: tensor<4x8xf32> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward>} {
    %p = ds.matmul %x, %x transpose_rhs {ds.work = #ds.work<forward>} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
    %q = ds.matmul %x, %x transpose_lhs {ds.work = #ds.work<forward>} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    %half = ds.slice %q offsets [0, 0] strides [1, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<4x4xf32>
    %r = ds.reshape %p : tensor<4x4xf32> -> tensor<2x8xf32>
    %s = ds.reshape %half : tensor<4x4xf32> -> tensor<2x8xf32>
    %inner = ds.concat %r, %s dim 0 {ds.work = #ds.work<forward>} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
    %outer = ds.concat %inner, %x dim 0 {ds.work = #ds.work<forward>} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    %sum = ds.matmul %outer, %q {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    return
  })mlir";

TEST_F(SegmentMemory, LetsPartsLieInJoinsFromTheFirstOn) {
  read(kJoins);
  SmallVector<dialect::ConcatOp> joins = llvm::to_vector(func.getOps<dialect::ConcatOp>());
  const dialect::ValueMemory &outer = memory->memories[*memory->find(joins[1].getResult())];
  EXPECT_EQ(memoryOf<dialect::MatmulOp>().joined, int32_t(*memory->find(joins[0].getResult())));
  EXPECT_EQ(memory->memories[*memory->find(joins[0].getResult())].joined,
            int32_t(*memory->find(joins[1].getResult())));
  EXPECT_EQ(outer.begin, 0u) << "where what lies in what lies in it is made";
  // The outer join of 256 bytes alone; then the product that a window is read of; then the sum.
  EXPECT_EQ(memory->getMemory().liveBytes(0), (std::vector<int64_t>{256, 512, 512, 512, 768}));
}

TEST_F(SegmentMemory, CopiesWindowsIntoJoins) {
  read(kJoins);
  auto product = *std::next(func.getOps<dialect::MatmulOp>().begin());
  EXPECT_EQ(memory->memories[*memory->find(product.getResult())].joined, -1);
}

// A value goes to the host and comes back, for what the state becomes.
const char *const kSent = R"mlir(
  func.func @last(%x: tensor<64xf32> {ds.input = "x"}, %w: tensor<64xf32> {ds.state = @w})
      -> (tensor<64xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %made = ds.exp %x {ds.work = #ds.work<forward>} : tensor<64xf32>
    %sent = ds.store %made {ds.work = #ds.work<forward>} : tensor<64xf32> -> !ds.stored<tensor<64xf32>, host>
    %back = ds.load %sent {ds.work = #ds.work<update>} : !ds.stored<tensor<64xf32>, host> -> tensor<64xf32>
    %next = ds.sub %w, %back {ds.work = #ds.work<update>} : tensor<64xf32>
    return %next : tensor<64xf32>
  })mlir";

TEST_F(SegmentMemory, CountsTheHostBesideTheDevice) {
  read(kSent);
  using Bytes = std::vector<int64_t>;
  const ::ds::analysis::StepMemory all = memory->getMemory();
  // Made, stored, loaded, and read where the state is.
  EXPECT_EQ(all.liveBytes(uint32_t(dialect::Space::Device)), (Bytes{256, 256, 256, 256}));
  EXPECT_EQ(all.liveBytes(uint32_t(dialect::Space::Host)), (Bytes{0, 256, 256, 0}));
  // So the choice has it, beside the states: nothing is chosen here.
  const dialect::ResidencyModel model = makeModel({}, {});
  EXPECT_EQ(model.problem.spaces[dialect::StepProblem::kHost].liveBytes, (Bytes{0, 256, 256, 0, 0}));
  EXPECT_FALSE(model.usesHost(*::ds::analysis::solveResidency(model.problem)));
}

// As a rotary embedding has it: two halves of what a product gives are changed and joined again, and backward
// reads the whole. It reads the second half by itself as well where `read` says so.
static std::string joinedHalves(bool isRead) {
  return std::string(R"mlir(
  func.func @last(%x: tensor<8x8xf32> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %p = ds.matmul %x, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %left = ds.slice %p offsets [0, 0] strides [1, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<4x8xf32>
    %right = ds.slice %p offsets [4, 0] strides [1, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<4x8xf32>
    %first = ds.neg %right {ds.work = #ds.work<forward>} : tensor<4x8xf32>
    %second = ds.exp %left {ds.work = #ds.work<forward>} : tensor<4x8xf32>
    %whole = ds.concat %first, %second dim 0 {ds.work = #ds.work<forward>} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    %q = ds.matmul %whole, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %k = ds.matmul %p, %q {ds.work = #ds.work<backward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %g = ds.matmul %whole, %k {ds.work = #ds.work<backward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
)mlir") +
         (isRead ? R"mlir(
    %s = ds.mul %second, %second {ds.work = #ds.work<backward>} : tensor<4x8xf32>
    %t = ds.matmul %s, %g {ds.work = #ds.work<backward>} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
)mlir"
                 : "") +
         "return }";
}

/// The problem's value that stands for the result of `op`.
static const ::ds::analysis::ResidencyValue &valueOf(const dialect::ResidencyModel &model, Operation *op) {
  for (size_t index = 0; index < model.choices.size(); ++index)
    if (model.valueOf(index) == op->getResult(0))
      return model.problem.values[index];
  static const ::ds::analysis::ResidencyValue none;
  ADD_FAILURE() << "no value stands for " << op->getName().getStringRef().str();
  return none;
}

/// To keep a half would keep all of what it lies in, which may as well be kept then.
TEST_F(SegmentMemory, KeepsNoPartForTheJoinAlone) {
  read(joinedHalves(false));
  const dialect::ResidencyModel model = makeModel({}, {});
  EXPECT_TRUE(valueOf(model, *func.getOps<dialect::ExpOp>().begin()).homes.empty());
  const auto &whole = valueOf(model, *func.getOps<dialect::ConcatOp>().begin());
  ASSERT_EQ(whole.homes.size(), 1u);
  EXPECT_EQ(whole.homes[0].holds[0].bytes, 256);
  EXPECT_EQ(whole.operands.size(), 2u);
}

TEST_F(SegmentMemory, CountsAKeptPartAsTheJoinInWhichItLies) {
  read(joinedHalves(true));
  const dialect::ResidencyModel model = makeModel({}, {});
  const auto &part = valueOf(model, *func.getOps<dialect::ExpOp>().begin());
  ASSERT_EQ(part.homes.size(), 1u);
  const ::ds::analysis::ResidencyHold &hold = part.homes[0].holds[0];
  EXPECT_EQ(hold.bytes, 256) << "and not 128";
  EXPECT_EQ(hold.begin, memory->momentOf(*std::next(func.getOps<dialect::MatmulOp>().begin())) + 1);
  EXPECT_EQ(hold.end, memory->momentOf(*func.getOps<dialect::MulOp>().begin()) + 1);
}

TEST_F(SegmentMemory, GathersAgainBehindTheUseBefore) {
  read(kGathers);
  const std::vector<int64_t> live = liveBytes({});
  const int64_t whole = 1024 * 1024 * 2, most = *llvm::max_element(live) - live.back();
  EXPECT_GE(most, whole);
  EXPECT_LT(most, 2 * whole);
}

/// Where compute waits for each gather, none is there before it is needed.
TEST_F(SegmentMemory, GathersNothingAheadWhereMemoryIsShort) {
  read(kEarly);
  dialect::ResidencyLimits limits;
  const int64_t ahead = llvm::count_if(liveBytes(limits), isWhole);
  limits.isNothingAhead = true;
  const int64_t needed = llvm::count_if(liveBytes(limits), isWhole);
  EXPECT_EQ(needed, 4); // twice a gather and the product that reads it
  EXPECT_GT(ahead, needed);
}

/// What is recomputed of a gathered weight takes it from the gather of backward, which is there from then on.
TEST_F(SegmentMemory, GathersEarlyForWhatIsRecomputed) {
  read(kEarly);
  dialect::ResidencyLimits limits;
  limits.isNothingAhead = true;
  dialect::RecomputePlan repeats{dialect::RecomputePlan::Kind::Demanded};
  repeats.demanded.ops = {"matmul"};
  const dialect::ResidencyModel model = makeModel(limits, repeats);
  const auto product = llvm::find_if(model.problem.values, [](const ::ds::analysis::ResidencyValue &value) {
    return value.recompute.has_value();
  });
  ASSERT_NE(product, model.problem.values.end());
  ASSERT_EQ(product->operands.size(), 1u);
  const auto &holds = model.problem.values[product->operands.front()].homes.front().holds;
  ASSERT_EQ(holds.size(), 1u);
  EXPECT_EQ(holds[0].bytes, 1024 * 1024 * 2);
  EXPECT_EQ(holds[0].begin, memory->momentOf(*func.getOps<dialect::MulOp>().begin()));
  // Behind the moment of the product, which runs again before the kernel.
  EXPECT_EQ(holds[0].end, 1 + memory->momentOf(*std::next(func.getOps<dialect::AllGatherOp>().begin())));
}

/// Products that run again before the command that reads them have a moment each, and what they alone read is
/// there for those that read it.
TEST_F(SegmentMemory, RepeatsProductsOneAfterTheOther) {
  read(R"mlir(
    func.func @last(%x: tensor<8x8xf32> {ds.input = "x"}) -> (tensor<8x8xf32> {ds.state = @out})
        attributes {ds.segment = #ds.segment<forward, backward, update>} {
      %y = ds.matmul %x, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
      %g = ds.mul %y, %y {ds.work = #ds.work<forward>} : tensor<8x8xf32>
      %h = ds.matmul %g, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
      %b = ds.matmul %h, %x {ds.work = #ds.work<backward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
      %c = ds.mul %y, %b {ds.work = #ds.work<backward>} : tensor<8x8xf32>
      return %c : tensor<8x8xf32>
    }
    ds.state @out role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>)mlir");
  dialect::RecomputePlan repeats{dialect::RecomputePlan::Kind::Demanded};
  repeats.demanded.ops = {"matmul"};
  const dialect::ResidencyModel model = makeModel({}, repeats);
  std::vector<std::pair<uint32_t, uint32_t>> holds; // of %y, %g and %h
  for (const ::ds::analysis::ResidencyValue &value : model.problem.values)
    for (const ::ds::analysis::ResidencyHold &hold : value.recompute.value().holds)
      holds.emplace_back(hold.begin, hold.end);
  // Forward has the moments 0 to 2, the products that run again 3 and 4, %b and %c 5 and 6.
  EXPECT_THAT(holds, testing::ElementsAre(std::pair(3, 7), std::pair(4, 5), std::pair(4, 6)));
}
