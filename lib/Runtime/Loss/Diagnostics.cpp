//===- Diagnostics.cpp - What a run leaves behind when its numbers end it ----------===//
#include "Diagnostics.h"

#include "Files/Text.h"
#include "Program/Elements.h"
#include "State/LocalState.h"

#include "ds/Runtime/Files/AtomicFile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <limits>

#include <sys/stat.h>

namespace ds::rt {

using Json = nlohmann::ordered_json;

/// Bytes of a state that are looked at at one time.
static constexpr uint64_t kPieceBytes = uint64_t{16} << 20;

void Diagnostics::keep(const StepRecord &record, uint64_t batch) {
  if (steps.size() == kMostSteps)
    steps.pop_front();
  steps.push_back({record, batch});
}

Status Diagnostics::makeDirectory(const std::string &directory) {
  if (!directory.empty() && ::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    return ioError("make the directory", directory, errno);
  return {};
}

namespace {
/// How the numbers of a tensor look.
class Numbers {
public:
  void add(double value) {
    ++count;
    if (std::isnan(value))
      ++nan;
    else if (std::isinf(value))
      ++infinite;
    else {
      least = std::min(least, value), most = std::max(most, value);
      squares += value * value;
      zero += value == 0;
    }
  }
  /// `least`, `most` and `norm` are those of the finite ones.
  Json toJson() const {
    Json json = {{"elements", count}, {"nan", nan}, {"infinite", infinite}, {"zero", zero}};
    if (least <= most)
      json.update({{"least", least}, {"most", most}, {"norm", std::sqrt(squares)}});
    return json;
  }

private:
  uint64_t count = 0, nan = 0, infinite = 0, zero = 0;
  double least = std::numeric_limits<double>::infinity(), most = -least, squares = 0;
};
} // namespace

/// The numbers of what the executor's rank holds of `state`.
static Result<Numbers> numbersOf(const Executor &executor, const State &state) {
  const LocalState local(executor, state);
  const uint64_t size = local.elementBytes(), piece = kPieceBytes / size;
  Numbers numbers;
  for (uint64_t at = 0; at < local.held.count; at += piece) {
    const uint64_t count = std::min(piece, local.held.count - at);
    const Status status =
        executor.inspect(local.address(local.held.at + at), count * size, [&](const std::byte *host) {
          for (uint64_t i = 0; i < count; ++i)
            numbers.add(loadElement(host + i * size, local.dtype));
          return Status();
        });
    if (!status)
      return status.error();
  }
  return numbers;
}

static Result<Json> describeStates(const Executor &executor) {
  Json states = Json::array();
  for (const State &state : executor.program().states) {
    const Result<Numbers> numbers = numbersOf(executor, state);
    if (!numbers)
      return numbers.error();
    Json entry = {{"name", state.name},
                  {"role", spell(state.role)},
                  {"dtype", spell(executor.program().buffers[state.buffer].dtype)}};
    entry.update(numbers->toJson());
    states.push_back(std::move(entry));
  }
  return states;
}

Result<std::string> Diagnostics::write(const std::string &directory, const Executor &executor,
                                       const Error &why) const {
  Json json = {{"error", why.message}, {"hint", why.hint}, {"rank", executor.rank()}};
  if (!lostNumber.empty())
    json["lost_number"] = lostNumber;
  for (const Step &step : steps) {
    Json record = Json::parse(toJson(step.record));
    record["batch"] = step.batch;
    json["steps"].push_back(std::move(record));
  }
  Result<Json> states = describeStates(executor);
  if (!states)
    return states.error();
  json["states"] = std::move(*states);
  const std::string path = fmt::format("{}/diagnostics-step-{}-rank-{}.json", directory,
                                       steps.empty() ? 0 : steps.back().record.step, executor.rank());
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  Status written = file->write(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (written)
    written = file->commit();
  return written ? Result<std::string>(path) : Result<std::string>(written.error());
}

} // namespace ds::rt
