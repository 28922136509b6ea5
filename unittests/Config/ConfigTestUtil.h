//===- ConfigTestUtil.h - Shorthands of the configuration tests ----------------------===//
//
// Tests read configurations from text; the file is called "c" in messages.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CONFIG_CONFIGTESTUTIL_H
#define DS_UNITTESTS_CONFIG_CONFIGTESTUTIL_H

#include "ds/Config/Config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::config {

/// Reads a text with optional --set arguments and ranks.
inline Result<Config> read(std::string text, std::vector<std::string> sets = {}, int64_t ranks = 1) {
  return readConfig({"c", std::move(text), std::move(sets), ranks, false});
}

/// Reads members next to a micro-batch of 1, without the braces.
inline Result<Config> readMembers(const std::string &members, int64_t ranks = 1) {
  return read("{train_micro_batch_size_per_gpu: 1,\n" + members + "}", {}, ranks);
}

/// The error as "message [hint]", or "ok".
template <class T>
std::string told(const Result<T> &result) {
  return result ? "ok" : result.error().message + " [" + result.error().hint + "]";
}

/// The value of a key as JSON, or what went wrong.
inline std::string valueOf(const Result<Config> &config, std::string_view key) {
  if (!config)
    return told(config);
  const Setting *setting = config->find(key);
  return setting ? setting->value : "absent";
}

/// "T M G" of the batch triple, or what went wrong.
inline std::string triple(const Result<Config> &config) {
  if (!config)
    return told(config);
  return std::to_string(config->batch.global) + " " + std::to_string(config->batch.micro) + " " +
         std::to_string(config->batch.accumulation);
}

/// All notices, one a line.
inline std::string noticesOf(const Result<Config> &config) {
  std::string out;
  if (config)
    for (const Notice &notice : config->notices)
      out += notice.text + "\n";
  return out;
}

} // namespace ds::config

#endif // DS_UNITTESTS_CONFIG_CONFIGTESTUTIL_H
