//===- Gpu.cpp - Measures a GPU for the planner -----------------------------------===//
//
// Each part opens the device for itself and can be asked for alone. What was not measured, or not on this
// machine, comes from the built-in description of the device that is most like it.
//
//===---------------------------------------------------------------------------===//
#include "Gpu.h"

#include "ds/Runtime/Files/AtomicFile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <optional>

namespace ds::rt {
namespace {

struct Part {
  const char *name;
  Status (*measure)(GpuCalibration &);
};
const Part kParts[] = {
    {"launches", measureGpuLaunches},
    {"copies", measureGpuCopies},
    {"host", measureGpuHost},
    {"context", measureGpuContext},
    {"products-bf16", [](GpuCalibration &c) { return measureGpuProducts(c, DType::BF16); }},
    {"products-fp16", [](GpuCalibration &c) { return measureGpuProducts(c, DType::F16); }},
    {"products-fp32", [](GpuCalibration &c) { return measureGpuProducts(c, DType::F32); }},
    {"rows", measureGpuRows},
    {"functions", measureGpuFunctions},
    {"attention", measureGpuAttention},
};

/// The built-in description of a device by a part of its name; of those of one name the one with less memory
/// comes first.
struct Builtin {
  const char *word, *name;
  uint64_t lessThan; ///< bytes
};
constexpr Builtin kBuiltins[] = {{"H200", "h200", UINT64_MAX},
                                 {"H100", "h100-80g", UINT64_MAX},
                                 {"A100", "a100-40g", uint64_t(50) << 30},
                                 {"A100", "a100-80g", UINT64_MAX},
                                 {"V100", "v100-32g", UINT64_MAX},
                                 {"3090", "rtx3090", UINT64_MAX},
                                 {"4090", "rtx4090", UINT64_MAX}};

/// What is no measurement: opens the device once.
Status describe(GpuCalibration &c) {
  GpuBench bench(c.device, c.quick);
  if (Status status = bench.bind(); !status)
    return status;
  const std::string text = bench.gpu().describe();
  c.gpu = text.substr(0, text.find(" ("));
  const uint64_t memory = bench.gpu().memory().total;
  int major = 0, minor = 0;
  const size_t at = text.find("(sm_");
  if (at != std::string::npos)
    std::sscanf(text.c_str() + at, "(sm_%1d%1d", &major, &minor);
  c.figures.text("name", c.gpu + " as measured", "");
  c.figures.text("base", builtinFor(c.gpu, memory), "every figure that is not given here");
  c.figures.text("device.name", c.gpu, text);
  c.figures.text("device.architecture", fmt::format("sm_{}{}", major, minor), "");
  c.figures.count("device.memory_bytes", static_cast<int64_t>(memory), "as the driver says");
  return {};
}

Status checkParts(const std::vector<std::string> &only) {
  std::vector<std::string> known;
  for (const Part &part : kParts)
    known.emplace_back(part.name);
  for (const std::string &each : only)
    if (std::find(known.begin(), known.end(), each) == known.end())
      return Error{ExitCode::Usage, fmt::format("--only {}: there is no such part", each),
                   fmt::format("parts are {}", fmt::join(known, ", "))};
  return {};
}

Status measure(GpuCalibration &c, const CalibrateOptions &options) {
  if (Status status = describe(c); !status)
    return status;
  for (const Part &part : kParts) {
    if (!options.only.empty() &&
        std::find(options.only.begin(), options.only.end(), part.name) == options.only.end())
      continue;
    std::fprintf(stderr, "calibrate: %s\n", part.name);
    if (Status status = part.measure(c); !status)
      return Error{status.error().code, fmt::format("calibration, {}: {}", part.name, status.error().message),
                   status.error().hint};
  }
  return {};
}

} // namespace

std::string builtinFor(const std::string &gpu, uint64_t memory) {
  for (const Builtin &each : kBuiltins)
    if (gpu.find(each.word) != std::string::npos && memory < each.lessThan)
      return each.name;
  return "h100-80g";
}

std::string spellRate(double rate, const char *unit) {
  static constexpr const char *kPrefixes[] = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  for (; rate >= 1000 && prefix + 1 < std::size(kPrefixes); ++prefix)
    rate /= 1000;
  return fmt::format("{:.4g} {}{}", rate, kPrefixes[prefix], unit);
}

std::string spellSeconds(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.3g} us", seconds * 1e6) : fmt::format("{:.3g} ms", seconds * 1e3);
}

void GpuCalibration::tell(const std::string &figure, double value, const std::string &text, double spread) {
  if (!log)
    return;
  std::fprintf(log, "{\"figure\":\"%s\",\"value\":%.6g,\"text\":\"%s\",\"spread\":%.4g}\n", figure.c_str(),
               value, text.c_str(), spread);
  std::fflush(log);
}

std::string GpuCalibration::provenance(double spread) const {
  return fmt::format("measured {}, {}, spread {:.0f} %", date, gpu, spread * 100);
}

Status calibrateGpu(const CalibrateOptions &options) {
  if (Status status = checkParts(options.only); !status)
    return status;
  std::optional<AtomicFile> file;
  if (!options.output.empty()) {
    Result<AtomicFile> made = AtomicFile::create(options.output);
    if (!made)
      return made.error();
    file = std::move(*made);
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> log(nullptr, std::fclose);
  if (!options.logJsonl.empty()) {
    log.reset(std::fopen(options.logJsonl.c_str(), "w"));
    if (!log)
      return Error{ExitCode::Io, options.logJsonl + ": cannot be written", "give a writable --log-jsonl"};
  }
  Result<std::unique_ptr<RankGroup>> group = connect(options.place, {});
  if (!group)
    return group.error();
  GpuCalibration c{.quick = options.quick,
                   .device = {group->get(), options.timeout},
                   .figures = {},
                   .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
                   .gpu = {},
                   .log = log.get()};
  if (Status status = measure(c, options); !status)
    return status;
  c.figures.sort();
  const std::string text = c.figures.write({fmt::format(
      "Written by ds-run --calibrate{} --device cuda on {}.", options.quick ? "=quick" : "", c.date)});
  if (file) {
    if (Status status = file->write(text); !status)
      return status;
    return file->commit();
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size()
             ? Status()
             : Status(Error{ExitCode::Io, "cannot write to stdout", ""});
}

} // namespace ds::rt
