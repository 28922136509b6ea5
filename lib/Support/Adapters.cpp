//===- Adapters.cpp - Which layers get low-rank adapters, and how large they are ----===//
#include "ds/Support/Adapters.h"

#include "ds/Support/Numbers.h"

#include <cmath>
#include <fnmatch.h>

namespace ds {

static constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

static std::string adapterName(std::string_view layer, std::string_view factor) {
  return std::string(kPrefix).append(layer).append(factor);
}

std::string adapterNameA(std::string_view layer) { return adapterName(layer, kA); }

std::string adapterNameB(std::string_view layer) { return adapterName(layer, kB); }

std::string_view layerOfAdapter(std::string_view name) {
  if (!name.starts_with(kPrefix) || (!name.ends_with(kA) && !name.ends_with(kB)))
    return {};
  return name.substr(kPrefix.size(), name.size() - kPrefix.size() - kA.size());
}

bool endsWithComponents(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) &&
         (name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.');
}

bool AdapterRule::matches(std::string_view name) const {
  if (isSuffix)
    return endsWithComponents(name, pattern);
  return ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

AdapterSize AdapterRequest::sizeOf(const AdapterRule &rule, std::string_view layer) const {
  std::optional<int64_t> rank;
  std::optional<double> alpha;
  for (const AdapterException &exception : exceptions)
    if (endsWithComponents(layer, exception.suffix)) {
      rank = rank ? rank : exception.rank;
      alpha = alpha ? alpha : exception.alpha;
    }
  return {rank.value_or(rule.size.rank), alpha.value_or(rule.size.alpha)};
}

std::optional<AdapterSize> AdapterRequest::find(std::string_view layer) const {
  for (const AdapterRule &rule : rules)
    if (rule.matches(layer))
      return sizeOf(rule, layer);
  return std::nullopt;
}

double AdapterRequest::scaleOf(const AdapterSize &size) const {
  const auto rank = static_cast<double>(size.rank);
  return size.alpha / (isRankStabilized ? std::sqrt(rank) : rank);
}

/// The parts of `text` between colons.
static std::vector<std::string> splitAtColons(const std::string &text) {
  std::vector<std::string> parts(1);
  for (const char letter : text)
    if (letter == ':')
      parts.emplace_back();
    else
      parts.back().push_back(letter);
  return parts;
}

/// Reads one spec; `dropout` is set where it has one.
static Status parseSpec(const std::string &spec, AdapterRule &rule, double &dropout) {
  constexpr uint64_t kMostRank = 1 << 20;
  constexpr double kLeastAlpha = 1e-6, kMostAlpha = 1e6, kMostDropout = 0.999;
  const std::vector<std::string> parts = splitAtColons(spec);
  const std::string option = "--lora " + spec;
  if (parts.size() < 2 || parts.size() > 4 || parts[0].empty())
    return Error{ExitCode::Usage,
                 "--lora expects PATTERN:RANK[:ALPHA[:DROPOUT]], or a folder with " +
                     std::string(kAdapterConfigFile) + ", but got '" + spec + "'",
                 "as --lora '*.q_proj:16:32:0.05'; names have no colon"};
  rule.pattern = parts[0];
  const Result<uint64_t> rank = parseWhole(option + ": the rank", parts[1], 1, kMostRank);
  if (!rank)
    return rank.error();
  rule.size.rank = static_cast<int64_t>(*rank);
  if (parts.size() > 2) {
    const Result<double> alpha = parseReal(option + ": alpha", parts[2], kLeastAlpha, kMostAlpha);
    if (!alpha)
      return alpha.error();
    rule.size.alpha = *alpha;
  }
  if (parts.size() > 3) {
    const Result<double> share = parseReal(option + ": dropout", parts[3], 0, kMostDropout);
    if (!share)
      return share.error();
    dropout = *share;
  }
  return {};
}

Result<AdapterRequest> parseAdapterRules(const std::vector<std::string> &specs) {
  AdapterRequest request;
  request.origin = "--lora";
  for (const std::string &spec : specs) {
    AdapterRule rule;
    double dropout = 0;
    if (Status status = parseSpec(spec, rule, dropout); !status)
      return status.error();
    if (!request.rules.empty() && dropout != request.dropout)
      return Error{ExitCode::Usage,
                   "--lora " + spec + ": dropout is " + std::to_string(dropout) + ", but " +
                       std::to_string(request.dropout) + " of the --lora before it",
                   "write one dropout in all of them: adapter_config.json has one lora_dropout"};
    request.dropout = dropout;
    request.rules.push_back(rule);
  }
  return request;
}

} // namespace ds
