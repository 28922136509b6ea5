//===- SharedLayers.cpp - How ranks share layers, in a plan's forms ----------------===//
#include "SharedLayers.h"

#include "ds/Support/Format.h"

#include <nlohmann/json.hpp>

namespace ds::report {

static constexpr unsigned kNames = 44; ///< columns of what is shared

/// "each of 4 : 1 : 1 of "; empty where there is one piece.
static std::string spellPieces(const std::vector<int64_t> &ratio) {
  std::string text;
  for (int64_t pieces : ratio)
    text += (text.empty() ? "each of " : " : ") + std::to_string(pieces);
  return text.empty() ? text : text + " of ";
}

/// "1/4 of dimension 0", "1/4 of each of 3 blocks of dimension 1", "1/4 of each of 4 : 1 : 1 of dimension 0",
/// or "whole: " and why.
static std::string spellCut(const SharedLayers::Parameters &parameters, int64_t ranks) {
  if (!parameters.cutDim)
    return "whole: " + parameters.reason;
  // Why parts are parts goes without saying.
  return "1/" + std::to_string(ranks) + " of " +
         (parameters.blocks > 1 ? "each of " + std::to_string(parameters.blocks) + " blocks of " : "") +
         spellPieces(parameters.ratio) + "dimension " + std::to_string(*parameters.cutDim);
}

static std::string spell(const std::string &op, const std::string &layers) {
  return op.empty() ? layers : layers.empty() ? op : op + " " + layers;
}

void printSharedLayers(TextPage &page, const SharedLayers &shared) {
  page.section("Layers shared by " + std::to_string(shared.ranks) + " ranks (tensor parallelism)");
  for (const SharedLayers::Parameters &each : shared.parameters)
    page.line("  " + left(each.names, kNames) + right(std::to_string(each.count), 5) +
              right(formatBytes(each.bytes), 11) + "  " + spellCut(each, shared.ranks));
  if (!shared.whole.empty())
    page.heading("Each rank computes whole");
  for (const SharedLayers::Whole &each : shared.whole)
    page.line("  " + left(spell(each.what, each.layers), kNames) + right(std::to_string(each.count), 5) +
              "  " + each.reason);
  if (!shared.exchanges.empty())
    page.heading("Exchanges of a micro-step, by what makes and what reads them");
  for (const SharedLayers::Exchange &each : shared.exchanges)
    page.line("  " + left(spell(each.maker, each.layers), kNames) + right(std::to_string(each.count), 5) +
              right(formatBytes(each.bytes), 11) + "  " + each.kind +
              (each.isForward ? ", forward" : ", backward") +
              (each.reader.empty() ? "" : ", for " + each.reader));
}

nlohmann::ordered_json sharedLayersJson(const SharedLayers &shared) {
  nlohmann::ordered_json json = {{"ranks", shared.ranks}};
  for (const SharedLayers::Parameters &each : shared.parameters) {
    nlohmann::ordered_json entry = {
        {"names", each.names}, {"count", each.count}, {"bytes", each.bytes}, {"reason", each.reason}};
    if (each.cutDim)
      entry["cut"] = {{"dimension", *each.cutDim}, {"blocks", each.blocks}};
    if (!each.ratio.empty())
      entry["cut"]["ratio"] = each.ratio;
    json["parameters"].push_back(std::move(entry));
  }
  for (const SharedLayers::Whole &each : shared.whole)
    json["whole"].push_back(
        {{"what", each.what}, {"layers", each.layers}, {"count", each.count}, {"reason", each.reason}});
  for (const SharedLayers::Exchange &each : shared.exchanges)
    json["exchanges"].push_back({{"kind", each.kind},
                                 {"maker", each.maker},
                                 {"layers", each.layers},
                                 {"reader", each.reader},
                                 {"pass", each.isForward ? "forward" : "backward"},
                                 {"count", each.count},
                                 {"bytes", each.bytes}});
  return json;
}

} // namespace ds::report
