//===- Trace.cpp - A planned step as a Chrome trace ---------------------------------===//
#include "Trace.h"

#include "ds/Runtime/Formats/ChromeTrace.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>

using namespace ds;
using namespace ds::opt;
using report::PlanTimeline;

static int64_t toNs(double seconds) { return std::llround(seconds * 1e9); }

/// The commands of a step, and arrows from records to waits that stand for them.
static void addCommands(rt::ChromeTrace &trace, uint32_t process, const PlanTimeline &timeline,
                        uint64_t &arrows) {
  std::map<std::pair<std::string, uint32_t>, const PlanTimeline::Command *> recorded;
  for (const PlanTimeline::Command &command : timeline.commands) {
    rt::TraceTrack track{process, command.stream};
    int64_t begin = toNs(command.begin), end = toNs(command.end);
    std::string name = command.name + (command.layer.empty() ? "" : " " + command.layer);
    if (command.kind == "record") {
      recorded[{command.segment, command.event}] = &command;
      continue;
    }
    if (command.kind == "wait" && begin == end)
      continue; // it does not stand
    trace.slice(track, name, command.kind, begin, end - begin, command.bytes, command.flops);
    auto record = recorded.find({command.segment, command.event});
    if (command.kind == "wait" && record != recorded.end())
      trace.flow("event", ++arrows, {process, record->second->stream}, toNs(record->second->begin), track,
                 end);
  }
}

/// What is reserved in one memory.
static void addMemory(rt::ChromeTrace &trace, uint32_t process, const PlanTimeline &timeline,
                      const std::string &space) {
  if (llvm::none_of(timeline.buffers,
                    [&](const PlanTimeline::Buffer &buffer) { return buffer.space == space; }))
    return;
  for (const report::LivePoint &point : liveCurve(timeline, space)) {
    int64_t time = toNs(point.time);
    trace.counter(process, space + " bytes", time, static_cast<double>(point.total()));
    for (unsigned category = 0; category < ds::report::kNumCategories; ++category)
      trace.counter(process, space + " " + spell(static_cast<report::Category>(category)), time,
                    static_cast<double>(point.bytes[category]));
  }
}

Status ds::opt::writePlanTrace(const std::vector<PlanTimeline> &timelines, const std::string &path) {
  rt::ChromeTrace trace;
  trace.setOrigin(0);
  uint64_t arrows = 0;
  for (auto [process, timeline] : llvm::enumerate(timelines)) {
    trace.nameProcess(process, timeline.title, static_cast<int>(process));
    for (auto [stream, name] : llvm::enumerate(timeline.streams))
      trace.nameThread({static_cast<uint32_t>(process), static_cast<uint32_t>(stream)}, name,
                       static_cast<int>(stream));
    addCommands(trace, process, timeline, arrows);
    for (const char *space : {"device", "host", "nvme"})
      addMemory(trace, process, timeline, space);
  }
  return trace.write(path);
}
