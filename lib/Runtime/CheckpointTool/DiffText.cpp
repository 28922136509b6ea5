//===- DiffText.cpp - In what two checkpoints differ, in words --------------------------===//

#include "Files/Text.h"
#include "Formats/Indices.h"
#include "Words.h"

#include "ds/Runtime/CheckpointTool/Diff.h"

#include <fmt/format.h>

#include <cmath>

namespace ds::rt {

namespace {

const char *spell(Difference kind) {
  static constexpr const char *kWords[] = {"equal", "only_in_a", "only_in_b", "shape", "type", "values"};
  return kWords[static_cast<uint8_t>(kind)];
}

std::string valuesText(const TensorDifference &each) {
  std::string text = fmt::format(
      "{} of {} elements, first {}: {} and {}; norms {:.6g} and {:.6g}, largest difference {:.6g}, "
      "relative {:.3g}",
      each.differing, each.elements, spellShape(indicesOf(each.first, each.shapeA)), each.firstA, each.firstB,
      each.normA, each.normB, each.largest, relativeDistance(each));
  return each.undefined == 0 ? text : text + fmt::format(" ({} without a finite difference)", each.undefined);
}

std::string lineOf(const TensorDifference &each) {
  const std::string name = quote(each.name);
  switch (each.kind) {
  case Difference::None:
    return {};
  case Difference::OnlyInA:
    return fmt::format("only in A: {} {} {}\n", name, spell(each.dtypeA), spellShape(each.shapeA));
  case Difference::OnlyInB:
    return fmt::format("only in B: {} {} {}\n", name, spell(each.dtypeB), spellShape(each.shapeB));
  case Difference::Shape:
    return fmt::format("shape: {}: {} and {}\n", name, spellShape(each.shapeA), spellShape(each.shapeB));
  case Difference::Type:
    return fmt::format("type: {}: {} and {}\n", name, spell(each.dtypeA), spell(each.dtypeB));
  case Difference::Values:
    return fmt::format("values: {}: {}\n", name, valuesText(each));
  }
  __builtin_unreachable();
}

/// JSON has no infinity.
Json numberOf(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json jsonOf(const TensorDifference &each) {
  Json object = {{"name", each.name}, {"difference", spell(each.kind)}};
  if (each.kind != Difference::OnlyInB) {
    object["dtype_a"] = spell(each.dtypeA);
    object["shape_a"] = each.shapeA;
  }
  if (each.kind != Difference::OnlyInA) {
    object["dtype_b"] = spell(each.dtypeB);
    object["shape_b"] = each.shapeB;
  }
  if (each.kind != Difference::None && each.kind != Difference::Values)
    return object;
  object["elements"] = each.elements;
  object["differing"] = each.differing;
  object["norm_a"] = numberOf(each.normA);
  object["norm_b"] = numberOf(each.normB);
  if (each.kind == Difference::None)
    return object;
  object["largest"] = numberOf(each.largest);
  object["relative"] = numberOf(relativeDistance(each));
  object["undefined"] = each.undefined;
  object["first"] = {{"index", indicesOf(each.first, each.shapeA)}, {"a", each.firstA}, {"b", each.firstB}};
  return object;
}

Json sideOf(const Checkpoint &checkpoint) {
  const Manifest &manifest = checkpoint.manifest();
  return {{"directory", checkpoint.directory()},
          {"step", manifest.step},
          {"samples", manifest.data.samples},
          {"plan_hash", manifest.planHash}};
}

std::string sideText(char letter, const Checkpoint &checkpoint) {
  const Manifest &manifest = checkpoint.manifest();
  return fmt::format("{}: {}, step {}, {} samples, {}\n", letter, quote(checkpoint.directory()),
                     manifest.step, manifest.data.samples, meshText(manifest.mesh));
}

} // namespace

std::string spellDifferences(const Checkpoint &a, const Checkpoint &b,
                             const std::vector<TensorDifference> &differences, bool json) {
  const size_t differing = countDiffering(differences);
  if (json) {
    Json document = {{"a", sideOf(a)},
                     {"b", sideOf(b)},
                     {"equal", differing == 0},
                     {"differing", differing},
                     {"tensors", Json::array()}};
    for (const TensorDifference &each : differences)
      document["tensors"].push_back(jsonOf(each));
    return dump(document);
  }
  std::string text = sideText('A', a) + sideText('B', b);
  for (const TensorDifference &each : differences)
    text += lineOf(each);
  const size_t all = differences.size();
  return text + (differing == 0 ? fmt::format("all {} tensors are equal to the bit\n", all)
                                : fmt::format("{} of {} tensors differ\n", differing, all));
}

} // namespace ds::rt
