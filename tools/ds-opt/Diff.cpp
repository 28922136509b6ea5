//===- Diff.cpp - Two plans, or a plan and its run -----------------------------------===//
#include "Output.h"

#include "ds/Report/RunDiff.h"
#include "ds/Runtime/Formats/ChromeTrace.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ds;

static Result<std::string> readWhole(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return Error{ExitCode::Io, path + ": " + buffer.getError().message(), "check the path"};
  return (*buffer)->getBuffer().str();
}

/// The traces of all ranks of a run: the file, and those that its other ranks have left beside it.
static Result<std::vector<report::StepTrace>> readRanks(const std::string &text, const std::string &path) {
  std::vector<report::StepTrace> ranks;
  Result<report::StepTrace> first = report::readTrace(text, path);
  if (!first)
    return first.error();
  ranks.push_back(std::move(*first));
  for (uint32_t rank = 1;; ++rank) {
    const std::string next = rt::tracePath(path, rank);
    if (!llvm::sys::fs::exists(next))
      return ranks;
    const Result<std::string> other = readWhole(next);
    if (!other)
      return other.error();
    Result<report::StepTrace> trace = report::readTrace(*other, next);
    if (!trace)
      return trace.error();
    ranks.push_back(std::move(*trace));
  }
}

/// What the first file is says what the second has to be: plan and plan or log, trace and trace.
Status ds::opt::diffFiles(const std::string &before, const std::string &after) {
  const Result<std::string> first = readWhole(before), second = readWhole(after);
  if (!first)
    return first.error();
  if (!second)
    return second.error();
  if (report::isTrace(*first)) {
    const Result<report::StepTrace> plan = report::readTrace(*first, before);
    if (!plan)
      return plan.error();
    const Result<std::vector<report::StepTrace>> ranks = readRanks(*second, after);
    return ranks ? writeText("-", report::diffRun(*plan, *ranks, before, after)) : Status(ranks.error());
  }
  const Result<report::PlanReport> plan = report::readPlanJson(*first, before);
  if (!plan)
    return plan.error();
  if (llvm::StringRef(after).ends_with(".jsonl")) {
    const Result<std::vector<report::LoggedStep>> steps = report::readRunLog(*second, after);
    return steps ? writeText("-", report::diffLog(*plan, *steps, before, after)) : Status(steps.error());
  }
  const Result<report::PlanReport> other = report::readPlanJson(*second, after);
  return other ? writeText("-", report::diffPlans(*plan, *other, before, after)) : Status(other.error());
}
