//===- CudaDevice.cpp - Streams, events and graphs of one GPU ---------------------===//
#include "CudaDevice.h"

#include "Activity.h"
#include "Commands.h"
#include "Cuda/Binding/Choices.h"
#include "Nvml.h"
#include "Nvtx.h"
#include "Program/ElfImage.h"
#include "Program/Execution.h"
#include "ds/Runtime/Program/HostNeeds.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt::cuda {

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaOptions &options) {
  Result<const Driver *> driver = openDriver();
  if (!driver)
    return driver.error();
  std::unique_ptr<CudaDevice> device(new CudaDevice(**driver, options));
  if (Status status = device->start(); !status)
    return status.error();
  return device;
}

Status CudaDevice::check(CUresult result, const char *what) const {
  return result == CUDA_SUCCESS ? Status() : asError(driver, result, what);
}

int CudaDevice::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver.deviceGetAttribute(&value, which, handle);
  return value;
}

Status CudaDevice::start() {
  int count = 0;
  if (Status status = check(driver.deviceGetCount(&count), "counting CUDA devices"); !status)
    return status;
  if (count == 0)
    return Error{ExitCode::Device, "--device cuda: no CUDA device",
                 "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or run with --device cpu"};
  if (options.ordinal >= static_cast<uint32_t>(count))
    return Error{ExitCode::Device,
                 fmt::format("--device cuda: rank {} on host {} needs CUDA device {}, but there {} {}",
                             options.ranks->rank(), options.ranks->host(options.ranks->rank()),
                             options.ordinal, count == 1 ? "is" : "are", count),
                 "start one rank for each device"};
  if (Status status =
          check(driver.deviceGet(&handle, static_cast<int>(options.ordinal)), "opening the device");
      !status)
    return status;
  char text[256] = "";
  driver.deviceGetName(text, sizeof text, handle);
  hardware = {attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
              attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
              attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
              text,
              {}};
  if (driver.deviceGetPCIBusId(text, sizeof text, handle) == CUDA_SUCCESS)
    busId = text;
  int version = 0;
  driver.driverGetVersion(&version);
  hardware.driver = driverVersion().value_or("CUDA " + spellVersion(version));
  usedAtStart = usedMemory(busId);
  if (Status status = check(driver.devicePrimaryCtxRetain(&context, handle), "making a context"); !status)
    return status;
  if (Status status = check(driver.ctxSetCurrent(context), "using the context"); !status)
    return status;
  size_t free = 0, total = 0;
  Status status = check(driver.memGetInfo(&free, &total), "asking for free memory");
  freeAtStart = free;
  return status;
}

/// Graphs hold collectives, kernels and the libraries' code: nothing of these may go before them, and NCCL
/// waits until they are gone. What runs of a graph ends by itself, or when its collectives are aborted.
void CudaDevice::dropGraphs() {
  for (CUgraphExec &graph : graphs)
    if (graph)
      driver.graphExecDestroy(std::exchange(graph, nullptr));
}

/// Waits for the work of a run that went well, no longer than the time-out, and leaves the other ranks.
void CudaDevice::leaveRanks() {
  if (!ranks || ranks->health()) // else a stream may wait for ever
    if (Status status = synchronize(); !status && ranks)
      ranks->abort("");
  dropGraphs();
}

void CudaDevice::destroyStreams() {
  for (const std::vector<CUevent> *list : {&events, &meetings, &stamps})
    for (CUevent event : *list)
      driver.eventDestroy(event);
  for (CUstream stream : streams)
    driver.streamDestroy(stream);
}

/// First what uses, then what is used: graphs, communicators, commands, streams, code, memory.
CudaDevice::~CudaDevice() {
  if (!context)
    return;
  driver.ctxSetCurrent(context);
  leaveRanks();
  tasks.clear();
  if (ranks)
    ranks->end();
  if (ranks && ranks->isStuck()) { // to free anything would be to wait for ever
    (void)libraries.release();
    return;
  }
  ranks.reset();
  destroyStreams();
  if (libraries && libraries->kernels)
    driver.moduleUnload(libraries->kernels);
  libraries.reset();
  if (module)
    driver.moduleUnload(module);
  for (CUdeviceptr memory : deviceMemory)
    driver.memFree(memory);
  for (void *memory : hostMemory)
    driver.memFreeHost(memory);
  driver.devicePrimaryCtxRelease(handle);
}

std::string CudaDevice::describe() const {
  int version = 0;
  driver.driverGetVersion(&version);
  return fmt::format("{} (sm_{}{}, {} multiprocessors), driver for CUDA {}{}", hardware.name, hardware.major,
                     hardware.minor, hardware.multiprocessors, spellVersion(version),
                     libraries ? libraries->describe() : "");
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// PTX for one architecture runs on it and on later ones.
Status CudaDevice::checkTarget() const {
  int target = 0;
  const bool known = std::sscanf(program->target.c_str(), "cuda:sm_%d", &target) == 1;
  const int here = hardware.major * 10 + hardware.minor;
  if (known && target <= here)
    return {};
  return Error{
      ExitCode::Device,
      fmt::format("the program was compiled for {}, but {} is sm_{}", program->target, hardware.name, here),
      fmt::format("compile the model with --target cuda:sm_{}", here)};
}

Status CudaDevice::load(const Program &loaded, uint32_t, std::vector<GroupUse> uses) {
  program = &loaded;
  groups = std::move(uses);
  libraries = std::make_unique<Libraries>();
  if (Status status = checkTarget(); !status)
    return status;
  if (Status status = loadModule(loaded); !status)
    return status;
  return makeStreams();
}

/// The assembled kernels where they are for exactly this device, else the PTX, which the driver assembles.
Status CudaDevice::loadModule(const Program &loaded) {
  if (loaded.image.empty())
    return {};
  if (!loaded.cubin.empty())
    if (Status status = checkElf(loaded.cubin, "assembled kernel image"); !status)
      return status;
  const std::string exact = fmt::format("cuda:sm_{}{}", hardware.major, hardware.minor);
  if (!loaded.cubin.empty() && loaded.target == exact &&
      driver.moduleLoadDataEx(&module, loaded.cubin.data(), 0, nullptr, nullptr) == CUDA_SUCCESS)
    return {};
  char log[4096] = "";
  CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  const CUresult result = driver.moduleLoadDataEx(&module, loaded.image.data(), 2, keys, values);
  if (result == CUDA_SUCCESS)
    return {};
  module = nullptr;
  return asError(driver, result,
                 fmt::format("the driver refuses the program's kernels{}{}", *log ? ": " : "", log));
}

Result<CUevent> CudaDevice::makeEvent(unsigned flags) {
  CUevent event = nullptr;
  if (Status status = check(driver.eventCreate(&event, flags), "making an event"); !status)
    return status.error();
  return event;
}

Status CudaDevice::makeStreams() {
  const auto compute = std::find(program->streams.begin(), program->streams.end(), StreamKind::Compute);
  computeStream = static_cast<uint32_t>(compute - program->streams.begin());
  for (StreamKind kind : program->streams) {
    CUstream stream = nullptr;
    // What others wait for goes before what merely computes.
    const int priority = kind == StreamKind::Compute ? 0 : -1;
    if (Status status = check(driver.streamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority),
                              "making a stream");
        !status)
      return status;
    streams.push_back(stream);
  }
  for (size_t i = 0; i < program->numEvents + streams.size(); ++i) {
    Result<CUevent> event = makeEvent(CU_EVENT_DISABLE_TIMING);
    if (!event)
      return event.error();
    (i < program->numEvents ? events : meetings).push_back(*event);
  }
  void *memory = nullptr;
  if (Status status = check(driver.memHostAlloc(&memory, markBytes(*program), CU_MEMHOSTALLOC_DEVICEMAP),
                            "allocating marks");
      !status)
    return status;
  hostMemory.push_back(memory);
  marks = static_cast<volatile uint32_t *>(memory);
  return check(driver.memHostGetDevicePointer(&marksOnDevice, memory, 0), "mapping marks");
}

Status CudaDevice::bind(uint32_t command, const Address &address) {
  tasks.resize(program->commands.size());
  const Command &bound = program->commands[command];
  for (uint32_t m = 0; m < numBindings(*program, command); ++m) {
    if (places.size() == m)
      places.emplace_back([address, m](uint32_t buffer) { return address(buffer, m); });
    const Binding binding{driver,     hardware,  *program, module, streams[bound.stream],
                          *libraries, places[m], others};
    Result<std::unique_ptr<CudaTask>> task = bindCommand(binding, command);
    if (!task)
      return task.error();
    tasks[command].push_back(std::move(*task));
  }
  return {};
}

/// Memory is clear before anything is timed on it.
Status CudaDevice::choose() {
  if (Status status = check(driver.streamSynchronize(streams[computeStream]), "clearing memory"); !status)
    return status;
  if (!groups.empty()) // a stage without collectives has bound none, but others wait for it
    if (Result<NcclRanks *> connected = connectRanks(); !connected)
      return connected.error();
  AlgorithmCache cache = AlgorithmCache::open();
  Status status = libraries->choices->settle(program->world > 1 ? options.ranks : nullptr, cache);
  libraries->notice = cache.notice();
  return status;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Status CudaDevice::issue(uint32_t command, uint32_t microBatch) {
  const auto &bound = tasks[command];
  return bound[microBatch % bound.size()]->issue(streams[program->commands[command].stream]);
}

Status CudaDevice::record(uint32_t event, uint32_t stream) {
  return check(driver.eventRecord(events[event], streams[stream]), "recording an event");
}

Status CudaDevice::wait(uint32_t event, uint32_t stream) {
  return check(driver.streamWaitEvent(streams[stream], events[event], 0), "waiting for an event");
}

Status CudaDevice::callHost(uint32_t stream, void (*body)(void *), void *argument) {
  return check(driver.launchHostFunc(streams[stream], body, argument), "calling the host");
}

Status CudaDevice::fork() {
  if (streams.size() == 1)
    return {};
  CUresult result = driver.eventRecord(meetings[computeStream], streams[computeStream]);
  for (uint32_t i = 0; i < streams.size() && result == CUDA_SUCCESS; ++i)
    if (i != computeStream)
      result = driver.streamWaitEvent(streams[i], meetings[computeStream], 0);
  return check(result, "starting the streams");
}

Status CudaDevice::join() {
  CUresult result = CUDA_SUCCESS;
  for (uint32_t i = 0; i < streams.size() && result == CUDA_SUCCESS; ++i) {
    if (i == computeStream)
      continue;
    result = driver.eventRecord(meetings[i], streams[i]);
    if (result == CUDA_SUCCESS)
      result = driver.streamWaitEvent(streams[computeStream], meetings[i], 0);
  }
  return check(result, "joining the streams");
}

Status CudaDevice::copy(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (bytes == 0)
    return {};
  return check(driver.memcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                  bytes, streams[computeStream]),
               "copying");
}

Status CudaDevice::fill(std::byte *at, uint8_t byte, uint64_t bytes) {
  return check(driver.memsetD8Async(reinterpret_cast<CUdeviceptr>(at), byte, bytes, streams[computeStream]),
               "filling");
}

Status CudaDevice::synchronize() {
  if (ranks)
    if (Status status = watch(); !status)
      return status;
  Status first;
  for (CUstream stream : streams)
    if (Status status = check(driver.streamSynchronize(stream), "the device failed"); !status && first)
      first = status;
  return first;
}

//===----------------------------------------------------------------------===//
// Graphs, marks and times
//===----------------------------------------------------------------------===//

Status CudaDevice::beginGraph() {
  return check(driver.streamBeginCapture(streams[computeStream], CU_STREAM_CAPTURE_MODE_RELAXED),
               "recording a graph");
}

Result<GraphId> CudaDevice::endGraph() {
  CUgraph graph = nullptr;
  const CUresult captured = driver.streamEndCapture(streams[computeStream], &graph);
  if (captured != CUDA_SUCCESS || !graph)
    return Error{ExitCode::Invalid, "the step cannot be recorded: " + spell(driver, captured), ""};
  CUgraphExec executable = nullptr;
  const CUresult result = driver.graphInstantiate(&executable, graph, 0);
  driver.graphDestroy(graph);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    driver.memGetInfo(&free, &total);
    return outOfMemory(0, "graph of a step", free, total);
  }
  if (Status status = check(result, "making the graph of a step"); !status)
    return status.error();
  graphs.push_back(executable);
  return static_cast<GraphId>(graphs.size() - 1);
}

void CudaDevice::abandonGraph() {
  CUgraph graph = nullptr;
  if (driver.streamEndCapture(streams[computeStream], &graph) == CUDA_SUCCESS && graph)
    driver.graphDestroy(graph);
}

Status CudaDevice::launch(GraphId graph) {
  if (!graphs[graph])
    return Error{ExitCode::Device, "the graph of a step is gone: its collectives have been aborted", ""};
  return check(driver.graphLaunch(graphs[graph], streams[computeStream]), "starting the graph of a step");
}

Status CudaDevice::mark(uint32_t stream, uint32_t command) {
  return check(driver.streamWriteValue32(streams[stream], marksOnDevice + stream * sizeof(uint32_t), command,
                                         CU_STREAM_WRITE_VALUE_DEFAULT),
               "marking progress");
}

uint32_t CudaDevice::reached(uint32_t stream) const { return marks[stream]; }

void CudaDevice::resetMarks(uint32_t command) {
  for (size_t i = 0; i < streams.size(); ++i)
    marks[i] = command;
}

Status CudaDevice::stamp(uint32_t index, uint32_t stream) {
  while (stamps.size() <= index) {
    Result<CUevent> event = makeEvent(CU_EVENT_DEFAULT);
    if (!event)
      return event.error();
    stamps.push_back(*event);
  }
  return check(driver.eventRecord(stamps[index], streams[stream]), "taking the time");
}

Result<double> CudaDevice::secondsBetween(uint32_t from, uint32_t to) {
  float milliseconds = 0;
  if (Status status =
          check(driver.eventElapsedTime(&milliseconds, stamps[from], stamps[to]), "reading times");
      !status)
    return status.error();
  return static_cast<double>(milliseconds) * 1e-3;
}

bool CudaDevice::startObserving() { return startActivity(); }
void CudaDevice::observe(uint32_t index) { enterActivity(index == kNoIndex ? kNoActivity : index); }
std::vector<Device::Observed> CudaDevice::takeObserved() { return finishActivity(); }

void CudaDevice::beginRange(const char *text) { nvtxRangePushA(text); }
void CudaDevice::endRange() { nvtxRangePop(); }

} // namespace ds::rt::cuda
