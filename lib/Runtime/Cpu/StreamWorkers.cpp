//===- StreamWorkers.cpp - Runs the streams of a segment side by side ----------===//
//
// Release on recording, acquire on waiting: what a command wrote before its event is seen after the wait.
//
//===---------------------------------------------------------------------------===//
#include "StreamWorkers.h"

#include "Process/Clock.h"

#include "ds/Support/RunTool.h"

#include <algorithm>
#include <system_error>

namespace ds::rt {

//===----------------------------------------------------------------------===//
// What streams share
//===----------------------------------------------------------------------===//

void StreamEvents::record(uint32_t event, uint32_t execution) {
  events[event].store(execution, std::memory_order_release);
  events[event].notify_all();
}

void StreamEvents::wait(uint32_t event, uint32_t execution) const {
  for (uint32_t seen; (seen = events[event].load(std::memory_order_acquire)) != execution;)
    events[event].wait(seen, std::memory_order_acquire);
}

void FirstFailure::note(const Error &failure) {
  {
    const std::lock_guard lock(mutex);
    if (failed.exchange(true))
      return;
    error = failure;
  }
  if (told)
    told(failure);
}

Status FirstFailure::status() const {
  if (!failed)
    return {};
  const std::lock_guard lock(mutex);
  return error;
}

uint32_t StreamGate::open(uint32_t part, uint32_t workers) {
  segment = part;
  running = workers;
  const uint32_t current = ++epoch;
  epoch.notify_all();
  return current;
}

void StreamGate::awaitAll() {
  for (uint32_t left; (left = running.load()) != 0;)
    running.wait(left);
}

std::optional<uint32_t> StreamGate::await(uint32_t &seen) {
  epoch.wait(seen);
  seen = epoch.load();
  return stopping ? std::nullopt : std::optional(segment);
}

void StreamGate::leave() {
  if (--running == 0)
    running.notify_all();
}

void StreamGate::close() {
  stopping = true;
  ++epoch;
  epoch.notify_all();
}

//===----------------------------------------------------------------------===//
// Their threads
//===----------------------------------------------------------------------===//

StreamWorkers::StreamWorkers(const Program &program, RunTask runTask, Overlapped overlapped, Failed failed)
    : program(program), runTask(std::move(runTask)), overlapped(std::move(overlapped)),
      failure(std::move(failed)), events(program.numEvents) {
  const auto compute = std::find(program.streams.begin(), program.streams.end(), StreamKind::Compute);
  computeStream = static_cast<uint32_t>(compute - program.streams.begin());
  for (const Segment &part : program.segments) {
    std::vector<std::vector<uint32_t>> byStream(program.streams.size());
    for (uint32_t i = part.firstCommand; i < part.firstCommand + part.numCommands; ++i)
      byStream[program.commands[i].stream].push_back(i);
    commands.push_back(std::move(byStream));
  }
}

Status StreamWorkers::start() try {
  if (program.hostThreads > 1) {
    Result<std::unique_ptr<HostTeam>> team = HostTeam::start(program.hostThreads);
    if (!team)
      return team.error();
    hostTeam = std::move(*team);
  }
  for (uint32_t stream = 0; stream < program.streams.size(); ++stream)
    if (stream != computeStream)
      threads.emplace_back([this, stream] { workerLoop(stream); });
  return {};
} catch (const std::system_error &error) {
  return noThread(error.code().value());
}

StreamWorkers::~StreamWorkers() {
  gate.close();
  for (std::thread &thread : threads)
    thread.join();
}

Status StreamWorkers::run(uint32_t segment) {
  failure.forget();
  const uint32_t current = gate.open(segment, static_cast<uint32_t>(threads.size()));
  runStream(computeStream, segment, current);
  const int64_t begin = nowNs();
  gate.awaitAll();
  waitedNs += nowNs() - begin;
  return failure.status();
}

void StreamWorkers::workerLoop(uint32_t stream) {
  if (program.streams[stream] == StreamKind::Host)
    setParallelTeam(hostTeam.get());
  uint32_t seen = 0;
  while (const std::optional<uint32_t> segment = gate.await(seen)) {
    runStream(stream, *segment, seen);
    gate.leave();
  }
}

/// Waits for the oldest command that is under way, and records the events behind it.
void StreamWorkers::settle(std::deque<uint32_t> &pending, uint32_t current) {
  if (Status status = overlapped.finish(pending.front()); !status)
    failure.note(status.error());
  for (pending.pop_front();
       !pending.empty() && program.commands[pending.front()].kind == CommandKind::RecordEvent;
       pending.pop_front())
    events.record(program.commands[pending.front()].callee, current);
}

/// A stream on which storage commands overlap: each begins when what it waits for has happened, whether or
/// not the one before it is over. Events are recorded when all before them is. Nothing that is under way is
/// left alone for an event, for that may wait for it.
void StreamWorkers::runStorage(uint32_t stream, uint32_t part, uint32_t current) {
  std::deque<uint32_t> pending; // commands that were begun, each with the records behind it
  for (uint32_t index : commands[part][stream]) {
    const Command &command = program.commands[index];
    if (command.kind == CommandKind::RecordEvent && !pending.empty()) {
      pending.push_back(index);
    } else if (command.kind == CommandKind::RecordEvent) {
      events.record(command.callee, current);
    } else if (command.kind == CommandKind::WaitEvent) {
      while (!pending.empty() && !events.isRecorded(command.callee, current))
        if (overlapped.advance(pending.front()))
          settle(pending, current);
      events.wait(command.callee, current);
    } else if (command.kind == CommandKind::Storage && !failure) {
      if (Status status = overlapped.begin(index); status)
        pending.push_back(index);
      else
        failure.note(status.error());
    } else if (!failure) {
      while (!pending.empty())
        settle(pending, current);
      if (Status status = runTask(index); !status)
        failure.note(status.error());
    }
  }
  while (!pending.empty())
    settle(pending, current);
}

void StreamWorkers::runStream(uint32_t stream, uint32_t part, uint32_t current) {
  if (program.streams[stream] == StreamKind::Storage)
    return runStorage(stream, part, current);
  for (uint32_t index : commands[part][stream]) {
    const Command &command = program.commands[index];
    const bool stands = stream == computeStream &&
                        (command.kind == CommandKind::WaitEvent || command.kind == CommandKind::Collective);
    const int64_t begin = stands ? nowNs() : 0;
    if (command.kind == CommandKind::RecordEvent) {
      events.record(command.callee, current);
    } else if (command.kind == CommandKind::WaitEvent) {
      events.wait(command.callee, current);
    } else if (!failure) {
      if (Status status = runTask(index); !status)
        failure.note(status.error());
    }
    if (stands)
      waitedNs += nowNs() - begin;
  }
}

} // namespace ds::rt
