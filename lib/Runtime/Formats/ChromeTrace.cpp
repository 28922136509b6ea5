//===- ChromeTrace.cpp - What ran when, for Perfetto and chrome://tracing ------===//

#include "ds/Runtime/Formats/ChromeTrace.h"

#include "Files/Text.h"
#include "ds/Runtime/Files/AtomicFile.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

using namespace ds;
using namespace ds::rt;

std::string ds::rt::tracePath(const std::string &path, uint32_t rank) {
  if (rank == 0 || path.empty())
    return path;
  std::filesystem::path file(path);
  const std::string extension = file.extension();
  return file.replace_extension(".rank" + std::to_string(rank) + extension);
}

uint32_t ChromeTrace::intern(std::string_view text) {
  auto [position, isNew] = stringNumbers.try_emplace(std::string(text), uint32_t(strings.size()));
  if (isNew)
    strings.emplace_back(text);
  return position->second;
}

void ChromeTrace::nameProcess(uint32_t process, std::string name, int sortIndex) {
  processes[process] = {std::move(name), sortIndex};
}

void ChromeTrace::nameThread(TraceTrack track, std::string name, int sortIndex) {
  threads[track] = {std::move(name), sortIndex};
}

void ChromeTrace::add(Event event, Amounts values) {
  if (events.size() >= maxEvents) {
    ++dropped;
    return;
  }
  if (event.phase == Phase::Counter || values.first != 0 || values.second != 0) {
    amounts.push_back(values);
    event.amounts = uint32_t(amounts.size());
  }
  events.push_back(event);
}

void ChromeTrace::slice(TraceTrack track, std::string_view name, std::string_view category, int64_t startNs,
                        int64_t durationNs, double bytes, double flops) {
  int64_t end = startNs + std::max<int64_t>(durationNs, 0);
  auto [last, isFirst] = trackEnds.try_emplace(track, end);
  if (!isFirst) {
    startNs = std::max(startNs, last->second);
    end = std::max(end, startNs);
    last->second = end;
  }
  add({Phase::Slice, track, intern(name), intern(category), startNs, end - startNs, 0}, {bytes, flops});
}

void ChromeTrace::instant(TraceTrack track, std::string_view name, int64_t timeNs) {
  add({Phase::Instant, track, intern(name), intern(""), timeNs, 0, 0});
}

void ChromeTrace::counter(uint32_t process, std::string_view name, int64_t timeNs, double value) {
  add({Phase::Counter, {process, 0}, intern(name), intern(""), timeNs, 0, 0}, {value, 0});
}

void ChromeTrace::flow(std::string_view name, uint64_t id, TraceTrack from, int64_t fromNs, TraceTrack to,
                       int64_t toNs) {
  if (events.size() + 2 > maxEvents) { // half an arrow is an error to the viewers
    dropped += 2;
    return;
  }
  add({Phase::FlowBegin, from, intern(name), intern("flow"), fromNs, int64_t(id), 0});
  add({Phase::FlowEnd, to, intern(name), intern("flow"), toNs, int64_t(id), 0});
}

/// Appends nanoseconds as microseconds with three decimals: exact, where a double would round a long run.
static void appendMicroseconds(std::string &out, int64_t ns) {
  char buffer[40];
  uint64_t magnitude = ns < 0 ? -uint64_t(ns) : uint64_t(ns);
  snprintf(buffer, sizeof(buffer), "%s%llu.%03llu", ns < 0 ? "-" : "",
           static_cast<unsigned long long>(magnitude / 1000),
           static_cast<unsigned long long>(magnitude % 1000));
  out += buffer;
}

static void appendTrack(std::string &out, TraceTrack track) {
  out += ",\"pid\":" + std::to_string(track.process) + ",\"tid\":" + std::to_string(track.thread);
}

/// Appends the metadata events that name one process or thread.
static void appendLabel(std::string &out, const char *kind, TraceTrack track, const std::string &name,
                        int sortIndex) {
  out += std::string("{\"ph\":\"M\",\"name\":\"") + kind + "_name\"";
  appendTrack(out, track);
  out += ",\"args\":{\"name\":";
  appendJsonString(out, name);
  out += std::string("}},\n{\"ph\":\"M\",\"name\":\"") + kind + "_sort_index\"";
  appendTrack(out, track);
  out += ",\"args\":{\"sort_index\":" + std::to_string(sortIndex) + "}},\n";
}

void ChromeTrace::appendLabels(std::string &out) const {
  for (const auto &[process, label] : processes)
    appendLabel(out, "process", {process, 0}, label.name, label.sortIndex);
  for (const auto &[track, label] : threads)
    appendLabel(out, "thread", track, label.name, label.sortIndex);
}

/// What only events of one phase have.
void ChromeTrace::appendDetails(std::string &out, const Event &event) const {
  Amounts values = event.amounts ? amounts[event.amounts - 1] : Amounts{0, 0};
  switch (event.phase) {
  case Phase::Slice:
    out += ",\"dur\":";
    appendMicroseconds(out, event.durationNs);
    if (event.amounts) {
      out += ",\"args\":{\"bytes\":";
      appendJsonNumber(out, values.first);
      out += ",\"flops\":";
      appendJsonNumber(out, values.second);
      out += '}';
    }
    break;
  case Phase::Instant:
    out += ",\"s\":\"t\"";
    break;
  case Phase::Counter:
    out += ",\"args\":{\"value\":";
    appendJsonNumber(out, values.first);
    out += '}';
    break;
  case Phase::FlowBegin:
    out += ",\"id\":" + std::to_string(uint64_t(event.durationNs));
    break;
  case Phase::FlowEnd:
    out += ",\"id\":" + std::to_string(uint64_t(event.durationNs)) + ",\"bp\":\"e\"";
    break;
  }
}

void ChromeTrace::appendEvent(std::string &out, const Event &event, int64_t originNs) const {
  static constexpr const char *kPhases[] = {"X", "i", "C", "s", "f"};
  out += std::string("{\"ph\":\"") + kPhases[size_t(event.phase)] + "\",\"name\":";
  appendJsonString(out, strings[event.name]);
  if (const std::string &category = strings[event.category]; !category.empty()) {
    out += ",\"cat\":";
    appendJsonString(out, category);
  }
  out += ",\"ts\":";
  appendMicroseconds(out, event.timeNs - originNs);
  appendTrack(out, event.track);
  appendDetails(out, event);
  out += '}';
}

/// Produces the JSON in pieces of about a megabyte.
template <class Sink>
Status ChromeTrace::emit(Sink &&sink) const {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"distributedInfo\":{\"rank\":" + std::to_string(rank) +
                    ",\"world_size\":" + std::to_string(world) +
                    "},\"droppedEvents\":" + std::to_string(dropped) + ",\"traceEvents\":[\n";
  appendLabels(out);
  int64_t originNs = origin.value_or(0);
  if (!origin && !events.empty())
    originNs = std::ranges::min(events, {}, &Event::timeNs).timeNs;
  bool isFirst = true;
  for (const Event &event : events) {
    out += isFirst ? "" : ",\n";
    isFirst = false;
    appendEvent(out, event, originNs);
    if (out.size() < 1 << 20)
      continue;
    if (Status status = sink(out); !status)
      return status;
    out.clear();
  }
  if (events.empty() && out.ends_with(",\n")) // labels alone
    out.resize(out.size() - 2);
  out += "\n]}\n";
  return sink(out);
}

std::string ChromeTrace::toJson() const {
  std::string json;
  (void)emit([&](const std::string &piece) {
    json += piece;
    return Status();
  });
  return json;
}

Status ChromeTrace::write(const std::string &path) const {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (Status status = emit([&](const std::string &piece) { return file->write(piece); }); !status)
    return status;
  return file->commit();
}
