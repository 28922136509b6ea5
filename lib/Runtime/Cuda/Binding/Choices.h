//===- Choices.h - What is chosen once, for all ranks and all later runs ----------------===//
//
// A command that can be run in several ways waits for a choice. When all commands are bound the choices are
// made together: one for each distinct problem (key), by the first rank that has it, from its cache or by the
// clock, and every other rank that has it takes the same. Ranks usually run one program and have the same
// problems, so that rank 0 chooses; where the lists differ every rank learns all of them first, so that all
// count the same rounds and nobody waits for a word that never comes.
//
// Engines that are kept are compiled when they are taken, a second each: that is done ahead, for all at once.
// So are those that are still to be timed, for as many problems at once as there are processors.
//
// In each round every rank makes at most one choice, for time-outs bound the wait of a round.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_BINDING_CHOICES_H
#define DS_LIB_RUNTIME_CUDA_BINDING_CHOICES_H

#include "AlgorithmCache.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ds::rt {
class RankGroup;
}

namespace ds::rt::cuda {

/// What a bound command waits for.
struct Choice {
  using Value = AlgorithmCache::Value;

  std::string key;  ///< device, driver, library and problem; the same for commands that must choose alike
  std::string what; ///< for errors: "commands[3] (layer 0): product of 4x6 and 6x5"
  /// Chooses here, by time or else the library's first proposal, without running it.
  std::function<Result<Value>(bool byTime)> choose;
  /// Takes what a value names. Fails where it is nothing for this problem.
  std::function<Status(const Value &)> take;
  /// Runs what was taken once, on operands of any values.
  std::function<Status()> tryOut;
  /// There is no choice: fails, or does it in another way.
  std::function<Status(const Error &why)> refuse;
  std::function<void()> taken = {}; ///< told once; may be empty
  /// Does what takes long of `take` ahead of it, on any thread, beside those of other keys; may be empty.
  /// What fails here fails there again.
  std::function<void(const Value &)> prepare = {};
  /// Parts of `choose` that take long, each of which may be done ahead of it on any thread, beside the others
  /// and those of other keys; may be empty. What is chosen does not depend on it.
  std::function<std::vector<std::function<void()>>(bool byTime)> ahead = {};
};

class Choices {
public:
  void add(Choice choice) { waiting.push_back(std::move(choice)); }

  /// Makes all choices that wait; collective where there are `ranks`. What can be done ahead is done on
  /// threads that call `enter` first. Fails where a choice is refused, or cannot be taken on this rank
  /// (ExitCode::Device), and with ExitCode::Peer where another rank fails.
  Status settle(RankGroup *ranks, AlgorithmCache &cache, const std::function<void()> &enter = {});

private:
  using Jobs = std::vector<std::function<void()>>;
  using Keys = std::vector<std::string>;
  /// What was decided of a problem.
  struct Decision {
    std::optional<Choice::Value> value;
    Error why = {}; ///< without a value
  };

  void index();
  Jobs keptJobs(const AlgorithmCache &cache) const;
  Jobs nextJobs(const Keys &mine, size_t &from, size_t most, const AlgorithmCache &cache) const;
  Result<std::vector<Keys>> share(RankGroup *ranks) const;
  Decision decide(const std::string &key, AlgorithmCache &cache);
  Status apply(const std::string &key, const Decision &decision, const std::string &chooser);
  static std::string spell(const Decision &decision);
  static Decision parse(const std::string &text);

  std::vector<Choice> waiting;
  Keys keys; ///< distinct, in the order in which they came
  std::map<std::string, std::vector<Choice *>> byKey;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BINDING_CHOICES_H
