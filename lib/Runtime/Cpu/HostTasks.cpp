//===- HostTasks.cpp - The commands of a program as tasks of this processor --------===//
#include "HostTasks.h"

#include "Process/Clock.h"

namespace ds::rt {

HostTasks::HostTasks(const Program &program)
    : program(program), tasks(program.commands.size()), began(program.commands.size()) {}

Task *HostTasks::taskOf(uint32_t command, uint32_t micro) const {
  return tasks[command][micro % tasks[command].size()].get();
}

void HostTasks::note(uint32_t command, int64_t begin) {
  const std::lock_guard lock(mutex);
  timings.push_back({command, program.commands[command].stream, begin, nowNs()});
}

Status HostTasks::run(uint32_t command, uint32_t micro) {
  Task *task = taskOf(command, micro);
  if (!task)
    return {};
  if (!measuring)
    return task->run();
  const int64_t begin = nowNs();
  Status status = task->run();
  note(command, begin);
  return status;
}

Status HostTasks::runHere(uint32_t command) {
  if (program.commands[command].kind != CommandKind::Collective)
    return run(command);
  const int64_t begin = nowNs();
  Status status = run(command);
  exposedNs += nowNs() - begin;
  return status;
}

Status HostTasks::begin(uint32_t command) {
  began[command] = nowNs();
  return taskOf(command)->begin();
}

Status HostTasks::finish(uint32_t command) {
  Status status = taskOf(command)->complete();
  if (measuring)
    note(command, began[command]);
  return status;
}

} // namespace ds::rt
