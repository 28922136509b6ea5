//===- Profile.cpp - Operations and time of a step by module -------------------------===//

#include "Profile.h"

#include "Program/Shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <vector>

namespace ds::rt {
namespace {

constexpr size_t kNameWidth = 44;

/// The module of that path, with all above it told of by `add`.
void visit(ModuleCost &model, const std::string &path, const std::function<void(ModuleCost &)> &add) {
  ModuleCost *module = &model;
  add(*module);
  for (size_t at = 0; at < path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    module = &module->inside[path.substr(at, dot - at)];
    add(*module);
    at = dot + 1;
  }
}

void addParameters(const Program &program, ModuleCost &model) {
  std::unordered_set<std::string_view> seen; // copies on several stages
  for (const State &state : program.states)
    if (state.role == Role::Parameter && seen.insert(state.name).second) {
      const size_t dot = state.name.rfind('.');
      visit(model, dot == std::string::npos ? "" : state.name.substr(0, dot),
            [&](ModuleCost &module) { module.parameters += elementsOf(state.logicalShape); });
    }
}

std::string flopsText(double flops) {
  return flops >= 1e12  ? fmt::format("{:.3f} TFLOP", flops * 1e-12)
         : flops >= 1e9 ? fmt::format("{:.3f} GFLOP", flops * 1e-9)
         : flops >= 1e6 ? fmt::format("{:.3f} MFLOP", flops * 1e-6)
                        : fmt::format("{:.0f} FLOP", flops);
}

std::string costText(const Cost &cost) {
  std::string text = fmt::format("{:>14} {:>11.6f} s", flopsText(cost.flops), cost.seconds);
  return cost.seconds > 0 && cost.flops > 0
             ? text + fmt::format(" {:>9.4f} TFLOP/s", cost.flops / cost.seconds * 1e-12)
             : text;
}

/// Modules of one depth, by path.
void collect(const ModuleCost &module, const std::string &path, int depth,
             std::vector<std::pair<std::string, const ModuleCost *>> &found) {
  if (depth == 0) {
    found.emplace_back(path, &module);
    return;
  }
  for (const auto &[name, inside] : module.inside)
    collect(inside, path.empty() ? name : path + "." + name, depth - 1, found);
}

int depthOf(const ModuleCost &module) {
  int depth = 0;
  for (const auto &[name, inside] : module.inside)
    depth = std::max(depth, 1 + depthOf(inside));
  return depth;
}

/// The first `top` modules of each depth by one figure.
std::string spellTop(const ModuleCost &model, int depth, uint32_t top) {
  struct Figure {
    const char *name;
    double (*of)(const ModuleCost &);
    std::string (*spell)(double);
  };
  static constexpr Figure kFigures[] = {
      {"parameters", [](const ModuleCost &m) { return static_cast<double>(m.parameters); },
       [](double count) { return fmt::format("{:.0f}", count); }},
      {"forward", [](const ModuleCost &m) { return m.of(Part::Forward).flops; }, flopsText},
      {"forward time", [](const ModuleCost &m) { return m.of(Part::Forward).seconds; },
       [](double seconds) { return fmt::format("{:.6f} s", seconds); }}};
  std::vector<std::pair<std::string, const ModuleCost *>> modules;
  collect(model, "", depth, modules);
  std::string text = fmt::format("depth {}\n", depth);
  for (const Figure &figure : kFigures) {
    std::stable_sort(modules.begin(), modules.end(), [&](const auto &a, const auto &b) {
      return figure.of(*a.second) > figure.of(*b.second);
    });
    text += fmt::format("  {:<13}", figure.name);
    for (size_t i = 0; i < std::min<size_t>(top, modules.size()); ++i)
      text += fmt::format("{}{} {}", i ? ", " : "", modules[i].first.empty() ? "model" : modules[i].first,
                          figure.spell(figure.of(*modules[i].second)));
    text += "\n";
  }
  return text;
}

void spellTree(const ModuleCost &module, const std::string &name, int level, int depth, double whole,
               std::string &text) {
  const Cost &forward = module.of(Part::Forward);
  Cost backward = module.of(Part::Backward);
  backward += module.of(Part::Recompute);
  const std::string shown = std::string(2 * static_cast<size_t>(level), ' ') + name;
  text += fmt::format("{:<{}} {:>13} {:>14} {:>11.6f} {:>14} {:>11.6f} {:>6.1f} %\n", shown, kNameWidth,
                      module.parameters, flopsText(forward.flops), forward.seconds, flopsText(backward.flops),
                      backward.seconds, whole > 0 ? 100 * module.seconds() / whole : 0);
  if (depth != 0)
    for (const auto &[inner, inside] : module.inside)
      spellTree(inside, inner, level + 1, depth - 1, whole, text);
}

} // namespace

double ModuleCost::seconds() const {
  double sum = 0;
  for (const Cost &cost : parts)
    sum += cost.seconds;
  return sum;
}

std::string moduleOf(const Program &program, const Command &command) {
  const std::string &place = program.strings[command.location];
  const size_t blank = place.find(' ');
  return blank == std::string::npos ? std::string() : place.substr(blank + 1);
}

ModuleCost profileOf(const Program &program, std::span<const Timing> timings) {
  ModuleCost model;
  addParameters(program, model);
  for (const Timing &timing : timings) {
    const Command &command = program.commands[timing.command];
    const StreamKind stream = program.streams[command.stream];
    if (!traitsOf(command.kind).computes() || (stream != StreamKind::Compute && stream != StreamKind::Host))
      continue;
    const Cost cost{command.flops, static_cast<double>(timing.endNs - timing.beginNs) * 1e-9};
    visit(model, moduleOf(program, command),
          [&](ModuleCost &module) { module.parts[static_cast<size_t>(command.part)] += cost; });
  }
  return model;
}

std::string spellProfile(const Program &program, const ModuleCost &model, uint64_t step, double seconds,
                         const ProfileSettings &settings) {
  const double samples =
      double(program.microBatch) * program.accumulation * program.mesh.size(program.dataAxes);
  std::string text = fmt::format("profile of step {} on rank 0 of {}, measured one command at a time\n"
                                 "  {:<11} {} in the model\n  {:<11} {} x {} samples a rank\n",
                                 step, program.world, "parameters", model.parameters, "batch",
                                 program.accumulation, program.microBatch);
  static constexpr std::pair<const char *, Part> kParts[] = {{"forward", Part::Forward},
                                                             {"recomputed", Part::Recompute},
                                                             {"backward", Part::Backward},
                                                             {"update", Part::Update},
                                                             {"others", Part::None}};
  for (const auto &[name, part] : kParts)
    if (model.of(part).seconds > 0)
      text += fmt::format("  {:<11} {}\n", name, costText(model.of(part)));
  text +=
      fmt::format("  {:<11} {:.6f} s, {:.2f} samples/s of all ranks\n", "step", seconds, samples / seconds);
  const int deepest = depthOf(model);
  const int depth = settings.depth < 0 ? deepest : std::min(settings.depth, deepest);
  for (int each = 0; each <= depth; ++each)
    text += spellTop(model, each, settings.top);
  if (!settings.detailed)
    return text;
  text += fmt::format("{:<{}} {:>13} {:>14} {:>11} {:>14} {:>11} {:>8}\n", "module", kNameWidth, "parameters",
                      "forward", "s", "backward", "s", "time");
  spellTree(model, "model", 0, depth, model.seconds(), text);
  return text;
}

} // namespace ds::rt
