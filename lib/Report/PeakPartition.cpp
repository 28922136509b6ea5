//===- PeakPartition.cpp - What the bytes of a plan's peak are for -----------------===//
//
// Everything that a report says of a peak is a sum over the same list of values, and what the arena has
// beyond them (alignment, and gaps that the packing could not fill) is the difference: categories, lines and
// peak cannot disagree.
//
//===---------------------------------------------------------------------------===//
#include "ds/Report/PlanReport.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace ds::report {

/// As many values are named one by one.
static constexpr size_t kMostNamed = 10;

namespace {
/// A part as a line of the list, but for activations, which have one for each layer, and its category.
struct PartRow {
  PeakPart part;
  Category category;
  const char *name;
};

constexpr std::array<PartRow, kNumPeakParts> kParts{{
    {PeakPart::Parameters, Category::Parameters, "parameters"},
    {PeakPart::ModelBuffers, Category::Parameters, "buffers of the model"},
    {PeakPart::Masters, Category::Optimizer, "master weights"},
    {PeakPart::Accumulators, Category::Gradients, "accumulated gradients"},
    {PeakPart::Moments, Category::Optimizer, "optimizer moments"},
    {PeakPart::Scalars, Category::Optimizer, "scalars of the step"},
    {PeakPart::Inputs, Category::Activations, "inputs"},
    {PeakPart::Waiting, Category::Activations, "what waits between segments"},
    {PeakPart::Activations, Category::Activations, "activations"},
    {PeakPart::Temporaries, Category::Activations, "temporaries"},
    {PeakPart::Gradients, Category::Gradients, "gradients"},
    {PeakPart::Gathered, Category::Communication, "gathered parameters"},
    {PeakPart::Exchanged, Category::Communication, "communication buffers"},
    {PeakPart::Workspace, Category::Workspace, "workspace"},
    {PeakPart::Staging, Category::Communication, "staging"},
}};

constexpr bool eachPartHasItsRow() {
  for (size_t i = 0; i < kNumPeakParts; ++i)
    if (size_t(kParts[i].part) != i)
      return false;
  return true;
}
static_assert(eachPartHasItsRow());
} // namespace

Category categoryOf(PeakPart part) { return kParts[size_t(part)].category; }

std::string repeatedLayer(const std::string &layer) {
  for (size_t begin = 0, end; begin < layer.size(); begin = end + 1) {
    end = std::min(layer.find('.', begin), layer.size());
    auto isDigit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    if (end > begin && std::all_of(layer.begin() + begin, layer.begin() + end, isDigit))
      return layer.substr(0, end);
  }
  return layer;
}

std::vector<LayerRun> findLayerRuns(const std::vector<LayerBytes> &layers) {
  std::vector<LayerRun> runs;
  for (size_t first = 0, last; first < layers.size(); first = last) {
    for (last = first + 1; last < layers.size() && layers[last].bytes == layers[first].bytes;)
      ++last;
    if (last - first == 2) // two lines say it better than one
      last = first + 1;
    runs.push_back({first, last});
  }
  return runs;
}

std::string nameRun(const std::vector<LayerBytes> &layers, LayerRun run) {
  auto name = [&](size_t i) { return layers[i].layer.empty() ? std::string("(no layer)") : layers[i].layer; };
  std::string first = name(run.first), last = name(run.last - 1);
  if (run.count() == 1)
    return first;
  size_t dot = first.rfind('.') + 1; // 0: there is none
  bool areSiblings = dot > 0 && last.compare(0, dot, first, 0, dot) == 0;
  return first + " .. " + (areSiblings ? last.substr(dot) : last);
}

/// The place of `layer`, behind the others where it is new.
static size_t placeOf(std::vector<LayerBytes> &layers, const std::string &layer) {
  auto entry =
      std::find_if(layers.begin(), layers.end(), [&](const LayerBytes &each) { return each.layer == layer; });
  if (entry == layers.end())
    entry = layers.insert(layers.end(), {layer, 0});
  return entry - layers.begin();
}

/// The number that ends `layer`, and what stands before it: "h." and 3 of "h.3"; -1: there is none.
static std::pair<std::string, int64_t> splitNumber(const std::string &layer) {
  size_t end = layer.find_last_not_of("0123456789") + 1;
  bool isNumbered = end < layer.size() && layer.size() - end < 10;
  return {layer.substr(0, isNumbered ? end : layer.size()), isNumbered ? std::stoll(layer.substr(end)) : -1};
}

/// The layers in the model's order: as they come, but repeated ones where the first of them comes, by number.
/// What is merged between layers may be made by the first that needs it and bear the name of another.
static std::vector<size_t> modelOrder(const std::vector<LayerBytes> &layers) {
  std::map<std::string, size_t> firstOf; // place of the first layer of a family
  std::vector<std::tuple<size_t, int64_t, size_t>> keys;
  for (size_t i = 0; i < layers.size(); ++i) {
    auto [family, number] = splitNumber(layers[i].layer);
    keys.emplace_back(firstOf.emplace(family, i).first->second, number, i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<size_t> order;
  for (const auto &key : keys)
    order.push_back(std::get<2>(key));
  return order;
}

/// `entries` in the order that `order` gives their places.
template <class T>
static std::vector<T> permute(const std::vector<T> &entries, const std::vector<size_t> &order) {
  std::vector<T> permuted;
  for (size_t place : order)
    permuted.push_back(entries[place]);
  return permuted;
}

namespace {
/// Values whose bytes are one line, and how many there are of each source.
class Tally {
public:
  void add(const std::string &source, int64_t size, size_t values = 1) {
    bytes += size;
    auto known = std::find_if(sources.begin(), sources.end(),
                              [&](const auto &entry) { return entry.first == source; });
    if (known == sources.end())
      known = sources.insert(sources.end(), {source, 0});
    known->second += values;
  }

  void add(const Tally &other) {
    for (const auto &[source, count] : other.sources)
      add(source, 0, count);
    bytes += other.bytes;
  }

  /// "states of f32, divided by 2 ranks: 14; states of f32, the same on each rank: 2".
  std::string spell() const {
    std::string text;
    for (const auto &[source, count] : sources)
      text += (text.empty() ? "" : "; ") + source + ": " + std::to_string(count);
    return text;
  }

  int64_t bytes = 0;

private:
  std::vector<std::pair<std::string, size_t>> sources;
};

/// Sums over the values of an arena at its peak, from which its lines are made.
class PeakPartition {
public:
  PeakPartition(const std::vector<PeakValue> &values, std::string where) : where(std::move(where)) {
    for (const PeakValue &value : values)
      add(value);
    std::vector<size_t> order = modelOrder(layers);
    layers = permute(layers, order);
    ofLayers = permute(ofLayers, order);
  }

  /// A line for each part that has bytes, and one for the arena's rest.
  std::vector<MemoryLine> list(int64_t rest) const;

private:
  void add(const PeakValue &value);
  void listActivations(std::vector<MemoryLine> &lines) const;

  std::string where;                      ///< the arena's memory, as lines say it
  std::array<Tally, kNumPeakParts> parts; ///< by PeakPart
  std::vector<LayerBytes> layers;         ///< of activations
  std::vector<Tally> ofLayers;            ///< by entry of `layers`
};
} // namespace

void PeakPartition::add(const PeakValue &value) {
  parts[size_t(value.part)].add(value.source, value.bytes);
  if (value.part != PeakPart::Activations)
    return;
  size_t place = placeOf(layers, repeatedLayer(value.layer));
  ofLayers.resize(layers.size());
  layers[place].bytes += value.bytes;
  ofLayers[place].add(value.source, value.bytes);
}

/// A line for each layer, or run of equal layers, of which the backward pass will read something.
void PeakPartition::listActivations(std::vector<MemoryLine> &lines) const {
  for (LayerRun run : findLayerRuns(layers)) {
    Tally together;
    for (size_t layer = run.first; layer < run.last; ++layer)
      together.add(ofLayers[layer]);
    std::string each = run.count() > 1 ? std::to_string(run.count()) + " layers of " +
                                             formatExact(layers[run.first].bytes) + " bytes; "
                                       : "";
    bool isOutside = run.count() == 1 && layers[run.first].layer.empty();
    std::string name = isOutside ? "outside of layers" : "of " + nameRun(layers, run);
    lines.push_back({"activations " + name, where, together.bytes, each + together.spell()});
  }
}

std::vector<MemoryLine> PeakPartition::list(int64_t rest) const {
  std::vector<MemoryLine> lines;
  for (size_t part = 0; part < parts.size(); ++part)
    if (PeakPart(part) == PeakPart::Activations)
      listActivations(lines);
    else if (parts[part].bytes > 0)
      lines.push_back({kParts[part].name, where, parts[part].bytes, parts[part].spell()});
  if (rest != 0)
    lines.push_back({"alignment and gaps", where, rest, "the arena beyond what lies in it at its peak"});
  return lines;
}

std::vector<PeakValue> takeLargest(std::vector<PeakValue> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return values[a].bytes != values[b].bytes ? values[a].bytes > values[b].bytes : a < b;
  });
  std::vector<PeakValue> largest;
  for (size_t i = 0; i < std::min(order.size(), kMostNamed); ++i)
    largest.push_back(std::move(values[order[i]]));
  return largest;
}

std::vector<MemoryLine> listParts(const std::vector<PeakValue> &values, int64_t arenaBytes,
                                  const std::string &where) {
  int64_t rest = arenaBytes;
  for (const PeakValue &value : values)
    rest -= value.bytes;
  return PeakPartition(values, where).list(rest);
}

void describePeak(PeakExplanation peak, int64_t arenaBytes, RankPlan &rank) {
  rank.deviceArena = rank.peakBytes = arenaBytes;
  int64_t rest = arenaBytes;
  for (const PeakValue &value : peak.largest) {
    rest -= value.bytes;
    rank.atPeak[size_t(categoryOf(value.part))] += value.bytes;
    if (isWholeStep(value.part))
      continue;
    size_t layer = placeOf(rank.byLayer, repeatedLayer(value.layer));
    rank.byLayer[layer].bytes += value.bytes;
  }
  rank.byLayer = permute(rank.byLayer, modelOrder(rank.byLayer));
  rank.atPeak[size_t(Category::Workspace)] += rest;
  rank.memory = listParts(peak.largest, arenaBytes, "device");
  peak.largest = takeLargest(std::move(peak.largest));
  for (const PeakValue &value : peak.largest)
    rank.largest.push_back({value.name, value.layer, value.bytes, categoryOf(value.part)});
  if (!peak.op.empty())
    rank.explanation = std::move(peak);
}

} // namespace ds::report
