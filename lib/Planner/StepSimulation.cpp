//===- StepSimulation.cpp - When the commands of a planned step run --------------------===//
#include "StepSimulation.h"

#include "ReuseDistance.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/LateUpdates.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;
namespace cost = ::ds::cost;
namespace rt = ::ds::rt;

/// What commands share: the links between devices, each way to and from the host, the disk.
static constexpr uint32_t kFabric = 1, kToHostLink = 2, kToDeviceLink = 3, kDisk = 4;

/// `command` as the simulation sees it, on stream number `stream`.
static cost::SimCommand toSimCommand(ScheduledOpInterface command, uint32_t stream, CommandCosts &costs,
                                     ReuseDistance &memory) {
  using Kind = cost::SimCommand::Kind;
  if (std::optional<int64_t> event = command.getRecordedEvent())
    return {Kind::Record, stream, 0, 0, static_cast<uint32_t>(*event)};
  if (std::optional<int64_t> event = command.getAwaitedEvent())
    return {Kind::Wait, stream, 0, 0, static_cast<uint32_t>(*event)};
  const double seconds = costs.seconds(command, memory.touch(command));
  switch (command.getCommandTraits().resource) {
  case rt::Resource::Fabric:
    return {Kind::Collective, stream, seconds, kFabric};
  case rt::Resource::Disk:
    return {Kind::Storage, stream, seconds, kDisk};
  case rt::Resource::Link:
    if (command.getStream() == StreamKind::ToHost)
      return {Kind::ToHost, stream, seconds, kToHostLink};
    return {Kind::ToDevice, stream, seconds, costs.hasHostLink() ? kToDeviceLink : kToHostLink};
  case rt::Resource::Cores:
    return {Kind::Compute, stream, seconds, 0, 0, /*onHost=*/command.getStream() == StreamKind::Host};
  case rt::Resource::Nothing:
    break;
  }
  llvm_unreachable("events are above");
}

/// The streams of all segments, compute first.
static SmallVector<StreamKind> findStreams(ArrayRef<func::FuncOp> segments) {
  SmallVector<StreamKind> streams{StreamKind::Compute};
  for (func::FuncOp func : segments)
    for (auto command : func.getBody().front().getOps<ScheduledOpInterface>())
      if (!llvm::is_contained(streams, command.getStream()))
        streams.push_back(command.getStream());
  llvm::sort(streams.begin() + 1, streams.end());
  return streams;
}

/// Simulates one segment.
static SegmentSimulation simulateSegment(func::FuncOp func, ArrayRef<StreamKind> streams,
                                         const cost::Rates &rates, CommandCosts &costs) {
  SegmentSimulation segment{ScheduledFunction(func), {}, 0, {}};
  std::vector<cost::SimCommand> commands;
  ReuseDistance memory;
  for (ScheduledOpInterface command : segment.scheduled.commands) // as the run before leaves the caches
    if (!command.isEvent())
      memory.touch(command);
  for (ScheduledOpInterface command : segment.scheduled.commands)
    commands.push_back(
        toSimCommand(command, llvm::find(streams, command.getStream()) - streams.begin(), costs, memory));
  segment.simulation = cost::simulate(commands, streams.size(), rates.cluster().device.contention);
  double reached = 0;
  for (auto [command, span] : llvm::zip_equal(segment.scheduled.commands, segment.simulation.spans)) {
    segment.reached.push_back(reached);
    if (command.getStream() == StreamKind::Compute)
      reached = span.end;
  }
  segment.reached.push_back(segment.simulation.seconds);
  return segment;
}

StepSimulation mlir::ds::simulateStep(ModuleOp module, const cost::Rates &rates) {
  return simulateStep(module, rates, EarlyUpdates::Stand);
}

StepSimulation mlir::ds::simulateStep(ModuleOp module, const cost::Rates &rates, EarlyUpdates early) {
  SmallVector<func::FuncOp> segments = getSegments(module);
  if (auto rotated = llvm::find(segments, getRotated(module)); rotated != segments.end())
    std::rotate(segments.begin(), rotated, rotated + 1); // it runs in the place of the first
  StepSimulation step{findStreams(segments), {}};
  CommandCosts costs(module, rates, early);
  for (func::FuncOp func : segments) {
    step.segments.push_back(simulateSegment(func, step.streams, rates, costs));
    step.segments.back().runs = runsPerStep(func);
  }
  return step;
}

double StepSimulation::sum(llvm::function_ref<double(const SegmentSimulation &)> figure) const {
  double total = 0;
  for (const SegmentSimulation &segment : segments)
    total += static_cast<double>(segment.runs) * figure(segment);
  return total;
}

/// Ranks of the module's mesh.
static int64_t countRanks(ModuleOp module) {
  MeshOp mesh = MeshOp::lookup(module);
  return mesh ? mesh.getNumRanks() : 1;
}

/// The figures that collectives of `ranks` ranks cost by.
static std::string linkSource(const cost::Rates &rates, int64_t ranks) {
  if (ranks > rates.cluster().devicesPerNode)
    return "between.port_bytes_per_second, inside.bytes_per_second";
  return "inside.bytes_per_second, inside.latency_seconds";
}

/// Seconds of the commands of a segment that `which` holds for.
static double secondsOf(const SegmentSimulation &segment,
                        llvm::function_ref<bool(ScheduledOpInterface)> which) {
  double seconds = 0;
  for (auto [command, span] : llvm::zip_equal(segment.scheduled.commands, segment.simulation.spans))
    seconds += which(command) ? span.end - span.begin : 0;
  return seconds;
}

/// True for commands with operations to count.
static bool hasFlops(ScheduledOpInterface command) { return command.getCountedFlops() > 0; }

/// What the products of `step` compute in: 16 bits where one of them does.
static cost::DType productType(const StepSimulation &step) {
  for (const SegmentSimulation &segment : step.segments)
    for (ScheduledOpInterface command : segment.scheduled.commands)
      if (hasFlops(command) && isa<CallOp>(*command))
        for (Value operand : command->getOperands()) {
          Type element = cast<BufferType>(operand.getType()).getTensor().getElementType();
          if (element.isBF16() || element.isF16())
            return element.isBF16() ? cost::DType::BF16 : cost::DType::F16;
        }
  return cost::DType::F32;
}

report::Prediction mlir::ds::predictStep(ModuleOp module, const cost::Rates &rates, double flops) {
  StepSimulation step = simulateStep(module, rates);
  double seconds = step.sum([](const SegmentSimulation &each) { return each.simulation.seconds; });
  double compute = step.sum([](const SegmentSimulation &each) { return each.simulation.computeSeconds; });
  double exposed =
      step.sum([](const SegmentSimulation &each) { return each.simulation.exposedCommunicationSeconds; });
  double storage =
      step.sum([](const SegmentSimulation &each) { return each.simulation.exposedStorageSeconds; });
  double toHost =
      step.sum([](const SegmentSimulation &each) { return each.simulation.exposedToHostSeconds; });
  double toDevice =
      step.sum([](const SegmentSimulation &each) { return each.simulation.exposedToDeviceSeconds; });
  double onHost = step.sum([](const SegmentSimulation &each) { return each.simulation.exposedHostSeconds; });
  double copies = toHost + toDevice;
  double products = step.sum([](const SegmentSimulation &each) { return secondsOf(each, hasFlops); });
  report::Prediction predicted;
  predicted.stepSeconds = seconds;
  predicted.computeSeconds = compute;
  predicted.exposedCommunicationSeconds = exposed;
  auto isCopied = [](StreamKind stream) {
    return stream == StreamKind::ToHost || stream == StreamKind::ToDevice || stream == StreamKind::Storage;
  };
  if (llvm::any_of(step.streams, isCopied)) {
    predicted.exposedCopySeconds = copies, predicted.exposedStorageSeconds = storage;
    predicted.exposedToHostSeconds = toHost, predicted.exposedToDeviceSeconds = toDevice;
  }
  if (seconds > 0)
    predicted.tflopsPerDevice = flops / seconds / 1e12;
  auto add = [&](const char *name, double part, const std::string &source) {
    if (part > 1e-9 * seconds) // not the rounding of sums
      predicted.terms.push_back({name, part, source});
  };
  add("products and attention", products, cost::productFigures(rates.cluster().device, productType(step)));
  add("other kernels", compute - products - onHost, "device.memory_bytes_per_second, device.launch_seconds");
  add("update on the host", onHost,
      cost::hostUpdateFigures(rates.cluster().host) + ", where the device does nothing");
  add("exposed communication", exposed, linkSource(rates, countRanks(module)));
  add("copies to the host", toHost, "host.to_device_bytes_per_second");
  add("copies to the device", toDevice, "host.to_device_bytes_per_second");
  add("exposed storage", storage, "nvme.read_bytes_per_second, nvme.write_bytes_per_second");
  add("standing still", seconds - compute - exposed - copies - storage, "streams that wait for each other");
  return predicted;
}

/// "0.0123 s, 0.001 s of them exposed": a step in one case, and how long nothing computes in it.
static std::string priceOf(ModuleOp module, const cost::Rates &rates, EarlyUpdates early) {
  StepSimulation step = simulateStep(module, rates, early);
  double seconds = step.sum([](const SegmentSimulation &each) { return each.simulation.seconds; });
  double compute = step.sum([](const SegmentSimulation &each) { return each.simulation.computeSeconds; });
  return llvm::formatv("{0:e3} s, {1:e3} s of them exposed", seconds, std::max(seconds - compute, 0.0));
}

FailureOr<double> mlir::ds::predictSeconds(ModuleOp planned) {
  FailureOr<::ds::cost::Rates> rates = readRates(planned);
  if (failed(rates))
    return failure();
  return predictStep(planned, *rates, /*flops=*/0).stepSeconds.value_or(0);
}

std::string mlir::ds::describeSpeculation(ModuleOp module, const cost::Rates &rates) {
  int64_t updates = 0, bytes = 0;
  for (func::FuncOp func : getSegments(module))
    for (Operation &op : func.getBody().front()) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        updates += launch.getPredicate() ? runsPerStep(func) : 0;
      auto copy = dyn_cast<CallOp>(op);
      if (copy && copy.getSpeculative())
        bytes += cast<BufferType>(copy.getBuffers().back().getType()).getSizeInBytes();
    }
  if (updates == 0)
    return "";
  return llvm::formatv(
      "{0} speculative updates on the host keep {1} bytes of old values there: a step takes {2}; "
      "where all are recomputed {3}; where all wait {4}",
      updates, bytes, priceOf(module, rates, EarlyUpdates::Stand),
      priceOf(module, rates, EarlyUpdates::Redone), priceOf(module, rates, EarlyUpdates::Waiting));
}

std::string mlir::ds::describeLateUpdates(ModuleOp module) {
  func::FuncOp flush = getFlush(module);
  if (!flush)
    return "";
  int64_t updates = 0, bytes = 0;
  for (LaunchOp launch : flush.getOps<LaunchOp>())
    updates += launch.getStream() == StreamKind::Host;
  for (StateOp state : module.getOps<StateOp>())
    if (isCarried(state))
      bytes += BufferType::getContiguous(state.getLocalType()).getSizeInBytes();
  return llvm::formatv(
      "{0} updates on the host are late: they run beside the next step's first forward, in the order in "
      "which it reads what they make; {1} bytes are kept for them beside accumulated gradients",
      updates, bytes);
}
