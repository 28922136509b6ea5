//===- Gaps.cpp - Places, and what is not supported there ------------------------===//

#include "Gaps.h"
#include "Failure.h"
#include "Operators.h"

#include <algorithm>

namespace ds::ts {

namespace jit = torch::jit;
namespace prim = c10::prim;

/// The source place of a node, as its author wrote it; empty where the archive does not say.
static Location findPlace(jit::Node &node) {
  c10::optional<jit::SourceRange> range = node.sourceRange();
  if (!range->source())
    return {};
  if (auto original = range->findSourceRangeThatGenerated())
    range = original;
  if (!range->source())
    return {};
  auto place = range->file_line_col();
  if (!place)
    return {};
  auto [file, line, column] = *place;
  return {"", file, line, column};
}

/// True for files of PyTorch itself: the user asks for the line of the model that led there.
static bool isLibrary(const std::string &file) {
  return file.find("/torch/nn/") != std::string::npos ||
         file.find("/torch/functional") != std::string::npos || file.find("/torch/_") != std::string::npos ||
         file.find("<torch_package") != std::string::npos;
}

/// The place of a node, or of one shortly before it: assignments and questions of attributes have none.
static Location findNearby(jit::Node &node) {
  Location place = findPlace(node);
  jit::Node *before = node.prev();
  for (int steps = 0; place.file.empty() && steps < 8 && before && before->kind() != prim::Param &&
                      before->kind() != prim::Return;
       ++steps, before = before->prev())
    place = findPlace(*before);
  return place;
}

Location CallPath::locate(jit::Node &node) const {
  Location innermost = findNearby(node), place = innermost;
  for (size_t i = callers.size(); i-- > 0 && (place.file.empty() || isLibrary(place.file));)
    if (Location caller = findPlace(*callers[i]); !caller.file.empty())
      place = caller;
  if (place.file.empty() || isLibrary(place.file))
    place = innermost;
  place.layer = layers.empty() ? "" : layers.back();
  return place;
}

static std::string spellPlace(const Location &place) {
  std::string text = place.file.empty() ? "" : place.file + ":" + std::to_string(place.line);
  if (!place.layer.empty())
    text += (text.empty() ? "in " : " in ") + place.layer;
  return text;
}

void Gaps::note(jit::Node &node, const std::string &what, GapKind kind) {
  constexpr size_t maxPlaces = 3;
  Gap &gap = gaps[what];
  gap.kind = kind;
  ++gap.count;
  Location place = path.locate(node);
  gap.layers.insert(place.layer);
  std::string text = spellPlace(place);
  if (!text.empty() && gap.places.size() < maxPlaces &&
      std::find(gap.places.begin(), gap.places.end(), text) == gap.places.end())
    gap.places.push_back(text);
}

void Gaps::noteRead(jit::Node &node, const std::vector<Value> &arguments) {
  for (const Value &argument : arguments)
    if (const char *untold = findUntold(argument))
      note(node, untold);
}

void Gaps::endUnlessConsequence(jit::Node &node, const Failure &failure) const {
  if (!gaps.empty())
    return;
  if (!failure.error.message.empty() && failure.error.message[0] == '\1')
    throw failure; // An inner call has named the place.
  Location place = path.locate(node);
  std::string where = place.file.empty() ? "" : place.file + ":" + std::to_string(place.line) + ": ";
  std::string layer = place.layer.empty() ? "" : " (in " + place.layer + ")";
  throw Failure({failure.error.code, "\1" + where + failure.error.message + layer, failure.error.hint});
}

/// True for a write to the model where each layer that does it misses an operator as well.
bool Gaps::isConsequence(const Gap &gap) const {
  if (gap.kind != GapKind::Write)
    return false;
  return std::all_of(gap.layers.begin(), gap.layers.end(), [&](const std::string &layer) {
    return std::any_of(gaps.begin(), gaps.end(), [&](const auto &other) {
      return other.second.kind == GapKind::Operator && other.second.layers.count(layer) > 0;
    });
  });
}

void Gaps::refuse() const {
  std::string list;
  int64_t count = 0;
  for (const auto &[what, gap] : gaps) {
    if (isConsequence(gap))
      continue;
    const char *version = introducedIn(what.substr(0, what.find(' ')));
    list += "\n  " + what + (version ? std::string(" (since PyTorch ") + version + ")" : "") + ": " +
            std::to_string(gap.count) + (gap.count == 1 ? " time" : " times");
    for (size_t i = 0; i < gap.places.size(); ++i)
      list += (i ? ", " : " at ") + gap.places[i];
    ++count;
  }
  if (count > 0)
    fail("the model uses " + std::to_string(count) + (count == 1 ? " thing that is" : " things that are") +
             " not supported:" + list,
         "write them with supported operators: ds-import --list-operators lists these");
}

} // namespace ds::ts
