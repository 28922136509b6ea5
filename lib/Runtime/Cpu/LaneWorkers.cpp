//===- LaneWorkers.cpp - Runs the lanes of a step side by side -------------------===//
//
// Release on counting, acquire on waiting: what an execution wrote is seen by those that wait for it.
//
//===---------------------------------------------------------------------------===//
#include "LaneWorkers.h"

#include "Process/Clock.h"

#include "ds/Support/RunTool.h"

#include <system_error>

namespace ds::rt {

LaneWorkers::LaneWorkers(std::span<const Execution> step, Run run, Failed failed)
    : step(step), run(std::move(run)), failure(std::move(failed)) {
  for (const Execution &execution : step)
    lanes[static_cast<size_t>(execution.lane)].push_back(&execution);
}

Status LaneWorkers::start() try {
  for (Lane lane : {Lane::Transfer, Lane::Move})
    if (!lanes[static_cast<size_t>(lane)].empty())
      threads.emplace_back([this, lane] { workerLoop(lane); });
  return {};
} catch (const std::system_error &error) {
  return noThread(error.code().value());
}

LaneWorkers::~LaneWorkers() {
  gate.close();
  for (std::thread &thread : threads)
    thread.join();
}

Status LaneWorkers::play(const Run &compute) {
  failure.forget();
  for (std::atomic<uint32_t> &count : over)
    count = 0;
  gate.open(0, static_cast<uint32_t>(threads.size()));
  runLane(Lane::Compute, compute);
  const int64_t begin = nowNs();
  gate.awaitAll();
  waitedNs += nowNs() - begin;
  return failure.status();
}

void LaneWorkers::workerLoop(Lane lane) {
  for (uint32_t seen = 0; gate.await(seen);) {
    runLane(lane, run);
    gate.leave();
  }
}

void LaneWorkers::await(const Execution &execution) {
  for (size_t lane = 0; lane < kNumLanes; ++lane)
    for (uint32_t seen; (seen = over[lane].load(std::memory_order_acquire)) < execution.after[lane];)
      over[lane].wait(seen, std::memory_order_acquire);
}

void LaneWorkers::runLane(Lane lane, const Run &body) {
  std::atomic<uint32_t> &done = over[static_cast<size_t>(lane)];
  for (const Execution *execution : lanes[static_cast<size_t>(lane)]) {
    const int64_t begin = nowNs();
    await(*execution);
    if (lane == Lane::Compute)
      waitedNs += nowNs() - begin;
    if (!failure)
      if (Status status = body(*execution); !status)
        failure.note(status.error());
    done.fetch_add(1, std::memory_order_release);
    done.notify_all();
  }
}

} // namespace ds::rt
