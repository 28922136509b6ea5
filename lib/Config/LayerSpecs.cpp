//===- LayerSpecs.cpp - What a configuration says of layers by their names -----------===//
//
// DeepSpeed's AutoTP is told by names which parameters are cut among tensor-parallel ranks, and how; its
// presets are such lists for models that it knows. Here layers are found by what is computed with them, and
// these are hints that fix a choice. An entry is
//   {"patterns": [".*\\.o_proj\\.weight$"], "partition_type": "row"}
//   {"patterns": [...], "partition_type": "column", "shape": [[2048, 512, 512], -1], "partition_dim": 0}
// where "shape" says that three tensors lie one behind the other in dimension 0.
//
//===---------------------------------------------------------------------------------===//
#include "Build.h"

#include <regex>

namespace ds::config {

namespace {

constexpr std::string_view kSpecs = "tensor_parallel.partition_config.layer_specs";

/// Of a preset. Patterns are separated by blanks.
struct PresetSpec {
  std::string_view model, patterns;
  LayerSpec::Cut cut;
  int64_t pieces = 1; ///< that lie one behind the other in dimension 0
};

using enum LayerSpec::Cut;
constexpr std::string_view kAttentionColumns = ".*\\.self_attn\\.[qkv]_proj\\.weight$",
                           kAttentionRows = ".*\\.self_attn\\.o_proj\\.weight$",
                           kMlpColumns = ".*\\.mlp\\.(up|gate)_proj\\.weight$",
                           kMlpRows = ".*\\.mlp\\.down_proj\\.weight$";
constexpr PresetSpec kPresets[] = {
    {"llama", kAttentionRows, Row},
    {"llama", kMlpRows, Row},
    {"llama", kAttentionColumns, Column},
    {"llama", kMlpColumns, Column},
    {"bloom", ".*\\.self_attention\\.dense\\.weight$ .*\\.mlp\\.dense_4h_to_h\\.weight$", Row},
    {"bloom", ".*\\.self_attention\\.query_key_value\\.weight$ .*\\.mlp\\.dense_h_to_4h\\.weight$", Column},
    {"chatglm", ".*\\.self_attention\\.dense\\.weight$ .*\\.mlp\\.dense_4h_to_h\\.weight$", Row},
    {"chatglm", ".*\\.self_attention\\.query_key_value\\.weight$", Column},
    {"chatglm", ".*\\.mlp\\.dense_h_to_4h\\.weight$", Column, 2},
    {"mixtral", kAttentionRows, Row},
    {"mixtral", ".*\\.block_sparse_moe\\.experts\\.\\d+\\.w2\\.weight$", Row},
    {"mixtral", kAttentionColumns, Column},
    {"mixtral", ".*\\.block_sparse_moe\\.experts\\.\\d+\\.w[13]\\.weight$", Column},
    {"deepseek_v2", kAttentionRows, Row},
    {"deepseek_v2", ".*\\.mlp\\..*down_proj\\.weight$", Row},
    {"deepseek_v2", ".*\\.self_attn\\.(q|q_b|kv_b)_proj\\.weight$", Column},
    {"deepseek_v2", ".*\\.mlp\\..*(up|gate)_proj\\.weight$", Column},
    {"qwen2", kAttentionRows, Row},
    {"qwen2", kMlpRows, Row},
    {"qwen2", kAttentionColumns, Column},
    {"qwen2", kMlpColumns, Column},
    {"phi3", kAttentionRows, Row},
    {"phi3", kMlpRows, Row},
    {"phi3", ".*\\.self_attn\\.qkv_proj\\.weight$", Column},
    {"phi3", ".*\\.mlp\\.gate_up_proj\\.weight$", Column, 2},
};

/// Reads one entry; the first mistake is told, and nothing of the entry counts then.
class SpecReader {
public:
  SpecReader(const TextLocation &place, size_t number, Report &report)
      : place(place), where(std::string(kSpecs) + "[" + std::to_string(number) + "]"), report(report) {}

  std::optional<LayerSpec> read(const Value &entry);

private:
  bool fail(const std::string &message, std::string hint = "") {
    report.complain(place, '"' + where + "\" " + message, std::move(hint));
    return false;
  }
  bool readTexts(const Value &member, std::vector<std::string> &to);
  bool readPatterns(const Value &member, LayerSpec &spec);
  bool readCut(const Value &member, LayerSpec &spec);
  bool readSizes(const Value &entry, std::vector<int64_t> &to);
  bool readShape(const Value &member, LayerSpec &spec);
  bool readDimension(const Value &member, LayerSpec &spec);

  const TextLocation &place;
  const std::string where;
  Report &report;
};

} // namespace

bool SpecReader::readTexts(const Value &member, std::vector<std::string> &to) {
  if (!member.is(Value::Kind::Array) || member.items.empty())
    return fail("expects a list of strings for \"" + member.key + "\", but got " + describe(member));
  for (const Value &item : member.items) {
    if (!item.is(Value::Kind::String))
      return fail("expects strings in \"" + member.key + "\", but got " + describe(item));
    to.push_back(item.text);
  }
  return true;
}

bool SpecReader::readPatterns(const Value &member, LayerSpec &spec) {
  if (!readTexts(member, spec.patterns))
    return false;
  for (const std::string &pattern : spec.patterns) {
    try {
      std::regex{pattern};
    } catch (const std::regex_error &) {
      return fail("has the pattern " + quote(pattern) + ", which is no regular expression");
    }
  }
  return true;
}

bool SpecReader::readCut(const Value &member, LayerSpec &spec) {
  constexpr std::pair<std::string_view, LayerSpec::Cut> kCuts[] = {
      {"column", Column}, {"row", Row}, {"skip", Skip}};
  for (auto [word, cut] : kCuts)
    if (member.isText(word)) {
      spec.cut = cut;
      return true;
    }
  return fail("expects \"column\", \"row\" or \"skip\" for \"partition_type\", but got " + describe(member));
}

/// -1, a number of equal pieces, or a list of sizes.
bool SpecReader::readSizes(const Value &entry, std::vector<int64_t> &to) {
  auto add = [&](const Value &value, int64_t least) {
    const std::optional<int64_t> size =
        value.is(Value::Kind::Number) ? exactInteger(value.text) : std::nullopt;
    if (size && *size >= least && *size != 0)
      to.push_back(*size);
    return size && *size >= least && *size != 0;
  };
  bool isRead = true;
  if (entry.is(Value::Kind::Array))
    for (const Value &item : entry.items)
      isRead = isRead && add(item, 1);
  else
    isRead = add(entry, -1);
  return (isRead && !to.empty()) ||
         fail("expects -1, a positive number or a list of these in \"shape\", but got " + describe(entry));
}

bool SpecReader::readShape(const Value &member, LayerSpec &spec) {
  if (!member.is(Value::Kind::Array) || member.items.empty())
    return fail("expects a list for \"shape\", but got " + describe(member));
  for (const Value &item : member.items)
    if (!readSizes(item, spec.shape.emplace_back()))
      return false;
  return true;
}

bool SpecReader::readDimension(const Value &member, LayerSpec &spec) {
  spec.dimension = member.is(Value::Kind::Number) ? exactInteger(member.text) : std::nullopt;
  return (spec.dimension && *spec.dimension >= 0) ||
         fail("expects the number of a dimension for \"partition_dim\", but got " + describe(member));
}

std::optional<LayerSpec> SpecReader::read(const Value &entry) {
  LayerSpec spec;
  if (!entry.is(Value::Kind::Object))
    return fail("expects an object, but got " + describe(entry)), std::nullopt;
  constexpr std::string_view kMembers[] = {"patterns", "partition_type", "shape", "partition_dim",
                                           "model_types"};
  for (const Value &member : entry.items) {
    const bool isRead = member.is(Value::Kind::Null)     ? true
                        : member.key == "patterns"       ? readPatterns(member, spec)
                        : member.key == "partition_type" ? readCut(member, spec)
                        : member.key == "shape"          ? readShape(member, spec)
                        : member.key == "partition_dim"  ? readDimension(member, spec)
                        : member.key == "model_types"
                            ? readTexts(member, spec.modelTypes)
                            : fail("has no key \"" + member.key + "\"", nearestWord(member.key, kMembers));
    if (!isRead)
      return std::nullopt;
  }
  if (spec.patterns.empty())
    return fail("expects \"patterns\", but got none"), std::nullopt;
  return spec;
}

/// What DeepSpeed's preset `model` says.
static void addPreset(std::string_view model, std::vector<LayerSpec> &specs) {
  for (const PresetSpec &preset : kPresets) {
    if (preset.model != model)
      continue;
    LayerSpec &spec = specs.emplace_back();
    for (std::string_view pattern : splitAt(preset.patterns, ' '))
      spec.patterns.emplace_back(pattern);
    spec.cut = preset.cut;
    if (preset.pieces > 1) {
      spec.shape = {{preset.pieces}, {-1}};
      spec.dimension = 0;
    }
  }
}

std::vector<LayerSpec> readLayerSpecs(const Resolved &resolved, Report &report) {
  std::vector<LayerSpec> specs;
  if (const Entry *given = resolved.find(kSpecs); given && resolved.given(kSpecs)) {
    if (!given->value.is(Value::Kind::Array))
      report.complain(given->value.place,
                      '"' + std::string(kSpecs) + "\" expects a list, but got " + describe(given->value));
    else
      for (size_t number = 0; number < given->value.items.size(); ++number)
        if (std::optional<LayerSpec> spec =
                SpecReader(given->value.place, number, report).read(given->value.items[number]))
          specs.push_back(std::move(*spec));
  }
  addPreset(resolved.text("tensor_parallel.preset_model"), specs);
  return specs;
}

} // namespace ds::config
