//===- MutationsTest.cpp - Manifests of strangers ------------------------------------------===//
//
// Manifests that are changed in one place, with a digest that fits. Whatever comes of them, every command
// ends, within a limit on memory: the checkpoint is refused or read.
//
//===---------------------------------------------------------------------------===//

#include "ToolFixture.h"

#include "ds/Runtime/CheckpointTool/Describe.h"
#include "ds/Runtime/CheckpointTool/Diff.h"
#include "ds/Runtime/CheckpointTool/Export.h"
#include "ds/Runtime/CheckpointTool/Verify.h"

#include <nlohmann/json.hpp>

#include <new>
#include <random>
#include <sys/resource.h>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

using Json = nlohmann::ordered_json;

/// Everything in the document.
void collectPlaces(Json &value, std::vector<Json *> &places) {
  places.push_back(&value);
  if (value.is_structured())
    for (Json &each : value)
      collectPlaces(each, places);
}

/// What may stand in the place of any value; the last ones are no JSON of our own.
const std::vector<Json> &wildValues() {
  static const std::vector<Json> values = [] {
    std::vector<Json> all = {nullptr,
                             true,
                             0.5,
                             1e308,
                             -1,
                             Json::object(),
                             Json::parse("[0, 9223372036854775807]"),
                             Json::parse("[9223372036854775807, 2]"),
                             Json::parse("[1048576, 1048576]"),
                             Json::parse("[[\"dp\"]]"),
                             std::string(5000, 'a'),
                             std::string("\0x", 2),
                             Json::parse(std::string(500, '[') + std::string(500, ']'))};
    for (const uint64_t number : {0, 1, 2, 3, 7, 8, 255, 4096, 65536, INT32_MAX})
      all.emplace_back(number);
    for (const int bit : {32, 40, 62, 63})
      all.emplace_back(uint64_t(1) << bit);
    all.emplace_back(UINT64_MAX);
    for (const char *text :
         {"", "x", "..", "a/b", "F4", "BF16", "I64", "BOOL", "C64", "buffer", "dp", "\x1b[2J"})
      all.emplace_back(text);
    return all;
  }();
  return values;
}

/// The document behind the digest with one change, of a value, a key or bytes.
std::string mutate(const Json &document, std::mt19937 &random) {
  const auto draw = [&](size_t below) { return random() % below; };
  Json changed = document;
  std::vector<Json *> places;
  collectPlaces(changed, places);
  Json &place = *places[draw(places.size())];
  switch (draw(5)) {
  case 0:
    place = *places[draw(places.size())]; // may be the whole one
    break;
  case 1:
    if (place.is_number_unsigned())
      place = place.get<uint64_t>() + (draw(2) ? 1 : -1);
    else if (place.is_array() && !place.empty())
      place.push_back(Json(place[draw(place.size())]));
    break;
  case 2:
    if (place.is_structured() && !place.empty())
      place.erase(std::next(place.begin(), static_cast<ptrdiff_t>(draw(place.size()))));
    break;
  default:
    place = wildValues()[draw(wildValues().size())];
  }
  std::string text = changed.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (draw(8) == 0)
    text[draw(text.size())] = static_cast<char>(random());
  return text;
}

class Mutations : public ToolFixture {
protected:
  /// Every command on the checkpoint; what they say is of no interest. True if it could be opened.
  bool useAll(const std::string &path, const std::string &good) {
    static_cast<void>(describeStore(root, true));
    static_cast<void>(describeStore(root, false));
    static_cast<void>(describeCheckpoint(path, {true, true, true}));
    static_cast<void>(describeCheckpoint(path, {true, true, false}));
    if (const Result<VerifyReport> report = verifyCheckpoint(path, 1))
      spellReport(*report), spellReportsAsJson({*report});
    const Result<Checkpoint> changed = Checkpoint::open(path), other = Checkpoint::open(good);
    if (!changed)
      return false;
    if (const Result<std::vector<TensorDifference>> found = diffTensors(*changed, *other))
      spellDifferences(*changed, *other, *found, true), spellDifferences(*changed, *other, *found, false);
    ExportOptions options;
    options.from = path;
    options.to = root + "/out";
    options.dtype = FileDType::BF16;
    if (exportCheckpoint(options))
      fs::remove_all(options.to);
    return true;
  }

  /// 2,000 changes within 1 GiB of memory. Ends the process: 0 if both kinds of answers came.
  [[noreturn]] void useMutants(const std::string &path, const std::string &good) {
#ifndef DS_SANITIZED
    const struct rlimit limit = {rlim_t(1) << 30, rlim_t(1) << 30};
    ::setrlimit(RLIMIT_AS, &limit);
#endif
    const std::string text = readText(path + "/manifest.json");
    Json document = Json::parse(text);
    document.erase("digest");
    std::mt19937 random(11);
    int opened = 0, refused = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::string mutant = mutate(document, random), body = " " + mutant.substr(1);
      writeText(path + "/manifest.json",
                "{\"digest\": \"" + digestOf(std::as_bytes(std::span(body))) + "\",\n" + body);
      try {
        ++(useAll(path, good) ? opened : refused);
      } catch (const std::bad_alloc &) { // the tool says so and ends with 4
        ++refused;
      }
    }
    ::_exit(opened > 100 && refused > 100 ? 0 : 1);
  }
};

TEST_F(Mutations, manifestsOfStrangersNeverCrash) {
  Model model(Mesh{{"dp", 2}, {"tp", 2}});
  Layout cut;
  cut.cuts = {AxisSet(), *model.program.mesh.find("tp")};
  model.add("cut", {4, 6}, cut);
  Layout seen;
  seen.view = {4, 2, 3};
  seen.existing = 3;
  seen.cuts = {AxisSet(), *model.program.mesh.find("tp"), AxisSet()};
  model.add("seen", {3, 6}, seen);
  model.addZero("flat", {5, 7});
  model.add("step", {}, {}, Role::Scalar);
  const std::string good = *save(systemFiles(), model, root + "/good", 1);
  const std::string path = *save(systemFiles(), model, root, 1);
  EXPECT_EXIT(useMutants(path, good), testing::ExitedWithCode(0), "");
}

/// A chunk of 1 TiB asks for no memory but that of the file.
TEST_F(Mutations, aChunkMayBeLargerThanItsFile) {
  const std::string path = write(1, {givenFloats("w", {1, 2})}, uint64_t(1) << 40);
  EXPECT_TRUE(verifyCheckpoint(path, 1)->damages.empty());
}

} // namespace
