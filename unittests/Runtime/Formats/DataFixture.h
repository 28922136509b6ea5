//===- DataFixture.h - Small data files, and reading them as a run does --------===//
#ifndef DS_UNITTESTS_RUNTIME_FORMATS_DATAFIXTURE_H
#define DS_UNITTESTS_RUNTIME_FORMATS_DATAFIXTURE_H

#include "TestFiles.h"
#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <numeric>

namespace ds::rt {

/// Tests of data sources.
class DataSourceTest : public FormatsTest {
protected:
  /// Ten samples: x[i] = (i, i + 0.5), y[i] = i.
  std::string tenSamples(const std::string &name = "d.safetensors") {
    std::vector<float> x;
    std::vector<int64_t> y;
    for (int i = 0; i < 10; ++i) {
      x.insert(x.end(), {float(i), float(i) + 0.5f});
      y.push_back(i);
    }
    std::vector<TensorSource> tensors = {{"x", FileDType::F32, {10, 2}, x.data()},
                                         {"y", FileDType::I64, {10}, y.data()}};
    EXPECT_TRUE(writeSafeTensors(path(name), tensors));
    return path(name);
  }

  /// The inputs that fit it, for micro-batches of `m`.
  static std::vector<InputSpec> xy(int64_t m) { return {{"x", DType::F32, {m, 2}}, {"y", DType::I64, {m}}}; }

  /// Tokens 0, 1, 2, ... as nanoGPT writes them.
  DataOptions tokens(unsigned count, uint32_t microBatch = 1) {
    std::vector<uint16_t> values(count);
    std::iota(values.begin(), values.end(), uint16_t(0));
    DataOptions options;
    options.path = write("t.bin", bytesOf(values));
    options.tokenWidth = TokenWidth::U16;
    options.microBatch = microBatch;
    return options;
  }
  static std::vector<InputSpec> ids(int64_t m, int64_t t) {
    return {{"ids", DType::I64, {m, t}}, {"targets", DType::I64, {m, t}}};
  }

  /// y of one micro-step.
  std::vector<int64_t> labels(DataSource &source, int64_t m, uint64_t step, uint32_t microStep,
                              uint32_t rank) {
    std::vector<float> x(size_t(m) * 2);
    std::vector<int64_t> y(size_t(m), -1);
    void *destinations[] = {x.data(), y.data()};
    Status status = source.fill(step, microStep, rank, destinations);
    EXPECT_TRUE(status) << status.error().message;
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(x[2 * i + 1], float(y[i]) + 0.5f); // the columns stay together
    return y;
  }

  static std::string refusal(Result<DataSource> source, ExitCode code = ExitCode::Invalid) {
    EXPECT_FALSE(source);
    if (source)
      return "";
    EXPECT_EQ(source.error().code, code) << source.error().message;
    return source.error().message;
  }

  DataOptions options(const std::string &path, uint32_t m = 1, uint32_t g = 1, uint32_t w = 1) {
    DataOptions options;
    options.path = path;
    options.microBatch = m;
    options.accumulation = g;
    options.world = w;
    options.notice = [this](std::string text) { notices.push_back(std::move(text)); };
    return options;
  }

  std::vector<std::string> notices;
};

} // namespace ds::rt

#endif // DS_UNITTESTS_RUNTIME_FORMATS_DATAFIXTURE_H
