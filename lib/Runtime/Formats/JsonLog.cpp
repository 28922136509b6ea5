//===- JsonLog.cpp - One JSON object a step, for machines ----------------------===//

#include "ds/Runtime/Formats/JsonLog.h"

#include "SigPipe.h"
#include "Text.h"

#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace ds;
using namespace ds::rt;

namespace {

/// Builds one object; remembers which values were not finite.
class LineBuilder {
public:
  void key(const char *name) {
    line += line.size() > 1 ? ",\"" : "\"";
    line += name;
    line += "\":";
  }
  void number(const char *name, const std::optional<double> &value) {
    if (!value)
      return;
    key(name);
    appendJsonNumber(line, *value);
    if (std::isfinite(*value))
      return;
    nonFinite += nonFinite.empty() ? "" : ",";
    nonFinite += '"' + std::string(name) + "\":\"" +
                 (std::isnan(*value) ? "nan"
                  : *value > 0       ? "inf"
                                     : "-inf") +
                 '"';
  }
  std::string finish() {
    if (!nonFinite.empty()) {
      key("non_finite");
      line += '{' + nonFinite + '}';
    }
    return line + '}';
  }

  std::string line = "{";

private:
  std::string nonFinite;
};

} // namespace

std::string ds::rt::toJson(const StepRecord &record) {
  LineBuilder builder;
  builder.key("step");
  builder.line += std::to_string(record.step);
  builder.number("loss", record.loss);
  builder.number("grad_norm", record.gradNorm);
  builder.number("lr", record.lr);
  builder.number("loss_scale", record.lossScale);
  if (record.skipped) {
    builder.key("skipped");
    builder.line += *record.skipped ? "true" : "false";
  }
  builder.number("step_seconds", record.stepSeconds);
  builder.number("samples_per_second", record.samplesPerSecond);
  if (record.peakBytes) {
    builder.key("peak_bytes");
    builder.line += "{\"device\":" + std::to_string(record.peakBytes->device) +
                    ",\"host\":" + std::to_string(record.peakBytes->host) +
                    ",\"nvme\":" + std::to_string(record.peakBytes->nvme) + "}";
  }
  if (record.commBytes) {
    builder.key("comm_bytes");
    builder.line += std::to_string(*record.commBytes);
  }
  builder.number("comm_seconds", record.commSeconds);
  builder.number("comm_exposed_seconds", record.commExposedSeconds);
  builder.number("eval_loss", record.evalLoss);
  if (record.graph) {
    builder.key("graph");
    builder.line += *record.graph ? "true" : "false";
  }
  if (!record.graphReason.empty()) {
    builder.key("graph_reason");
    appendJsonString(builder.line, record.graphReason);
  }
  return builder.finish();
}

Result<JsonLog> JsonLog::open(const std::string &path, bool append, Warning warning) {
  JsonLog log;
  log.path = path;
  log.warning = std::move(warning);
  // Never O_RDWR: a pipe of which we are a reader ourselves would fill up and stop the run instead of
  // breaking.
  log.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  if (log.fd < 0)
    return ioError("write the log", path, errno);
  if (append)
    log.dropTornLine();
  return log;
}

/// A run that was killed while it wrote leaves half a line, which no reader could parse.
void JsonLog::dropTornLine() {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return;
  char tail[8192]; // a line is a few hundred bytes
  off_t begin = info.st_size > off_t(sizeof(tail)) ? info.st_size - off_t(sizeof(tail)) : 0;
  int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t count = pread(reader, tail, sizeof(tail), begin);
  close(reader);
  size_t newline = std::string_view(tail, count > 0 ? size_t(count) : 0).rfind('\n');
  if (count < 0 || (newline == std::string_view::npos && begin != 0))
    torn = true; // cannot be seen, or is not ours: the next line starts on a line of its own
  else if (newline == std::string_view::npos)
    torn = ftruncate(fd, 0) != 0;
  else if (begin + off_t(newline) + 1 != info.st_size)
    torn = ftruncate(fd, begin + off_t(newline) + 1) != 0;
}

void JsonLog::giveUp(int errorNumber) {
  if (errorNumber == EPIPE)
    close(std::exchange(fd, -1));
  if (std::exchange(warned, true) || !warning)
    return;
  warning(ioError("write the log", path, errorNumber).message + "; training goes on" +
          (errorNumber == EPIPE ? " without it" : ", lines will be missing"));
}

void JsonLog::write(const StepRecord &record) {
  if (fd < 0)
    return;
  std::string line = (torn ? "\n" : "") + toJson(record) + "\n";
  BlockSigPipe guard;
  size_t written = 0;
  while (written < line.size()) {
    ssize_t count = ::write(fd, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      int failure = count < 0 ? errno : ENOSPC;
      struct stat info;
      bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
      if (written > 0)
        torn = !regular || ftruncate(fd, info.st_size - off_t(written)) != 0;
      return giveUp(failure);
    }
    written += size_t(count);
  }
  torn = false;
}

JsonLog::JsonLog(JsonLog &&other) noexcept { *this = std::move(other); }

JsonLog &JsonLog::operator=(JsonLog &&other) noexcept {
  std::swap(path, other.path);
  std::swap(warning, other.warning);
  std::swap(fd, other.fd);
  std::swap(warned, other.warned);
  std::swap(torn, other.torn);
  return *this;
}

JsonLog::~JsonLog() {
  if (fd >= 0)
    close(fd);
}
