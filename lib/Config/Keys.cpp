//===- Keys.cpp - Looking keys up, and guessing what a mistyped one means -------------===//
//
// See Keys.h. The table is a few hundred rows and is read once per key of a file, so lookups are plain scans.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"

#include "ds/Support/EditDistance.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ds::config {

std::span<const Key> keyTable() {
  static const std::vector<Key> table = [] {
    std::vector<Key> all;
    for (std::span<const Key> part : {trainingKeys(), memoryKeys(), parallelKeys(), toolKeys()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

std::vector<std::string_view> splitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Whether the components of `path` are the first ones of `pattern`; `whole`: all of them.
static bool matches(std::string_view pattern, std::string_view path, bool whole) {
  while (true) {
    size_t p = std::min(pattern.find('.'), pattern.size()), q = std::min(path.find('.'), path.size());
    if (pattern.substr(0, p) != "*" && pattern.substr(0, p) != path.substr(0, q))
      return false;
    bool patternEnds = p == pattern.size(), pathEnds = q == path.size();
    if (patternEnds || pathEnds)
      return pathEnds && (whole ? patternEnds : !patternEnds);
    pattern.remove_prefix(p + 1);
    path.remove_prefix(q + 1);
  }
}

bool isFor(const Key &key, std::string_view type) {
  if (key.only.empty())
    return true;
  for (std::string_view rest = key.only; !rest.empty();) {
    size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == type)
      return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool matchesAny(std::string_view key, std::span<const std::string_view> patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
    bool isBeginning = pattern.ends_with('.') || pattern.ends_with('_');
    return isBeginning ? key.starts_with(pattern) : key == pattern;
  });
}

const Key *findKey(std::string_view path, std::string_view type) {
  const Key *found = nullptr;
  for (const Key &key : keyTable()) {
    if (key.path == path && isFor(key, type))
      return &key;
    if (!found && isFor(key, type) && matches(key.path, path, true))
      found = &key; // a wildcard; an exact row may follow
  }
  return found;
}

bool isSection(std::string_view path) {
  return std::any_of(keyTable().begin(), keyTable().end(),
                     [&](const Key &key) { return matches(key.path, path, false); });
}

/// Whether all of `few` stand among `many`, in their order.
static bool isSubsequence(const std::vector<std::string_view> &few,
                          const std::vector<std::string_view> &many) {
  size_t i = 0;
  for (std::string_view part : many)
    if (i < few.size() && few[i] == part)
      ++i;
  return i == few.size() && !few.empty();
}

/// How far a name is from what was written: edits of letters, or words between underscores left out or added.
static size_t nameDistance(std::string_view written, std::string_view name) {
  size_t letters = editDistance(written, name);
  std::vector<std::string_view> a = splitAt(written, '_'), b = splitAt(name, '_');
  if (isSubsequence(a, b) || isSubsequence(b, a))
    letters = std::min(letters, std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  return letters;
}

std::string nearestWord(std::string_view word, std::span<const std::string_view> words) {
  if (word.size() > 100) // no key is as long, and the distance is quadratic
    return "";
  std::string best;
  size_t bestDistance = std::max<size_t>(2, word.size() / 2) + 1;
  for (std::string_view candidate : words) {
    size_t distance = nameDistance(word, candidate);
    if (distance < bestDistance && distance < candidate.size()) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string_view> namesBelow(std::string_view section, std::string_view type) {
  std::vector<std::string_view> names;
  size_t depth =
      section.empty() ? 0 : static_cast<size_t>(std::count(section.begin(), section.end(), '.')) + 1;
  for (const Key &key : keyTable()) {
    if (!isFor(key, type) || (depth > 0 && !matches(key.path, section, false)))
      continue;
    std::string_view name = splitAt(key.path, '.')[depth];
    if (name != "*" && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

namespace {
/// What other tools call a key.
struct OtherName {
  std::string_view name, key;
};
} // namespace

#define OPTIMIZER "optimizer.params."
#define SCHEDULER "scheduler.params."
/// Names that no distance of letters leads to the key of.
static constexpr OtherName kOtherNames[] = {
    {"learning_rate", OPTIMIZER "lr"},
    {"base_lr", OPTIMIZER "lr"},
    {"max_lr", OPTIMIZER "lr"},
    {"beta1", OPTIMIZER "betas"},
    {"beta2", OPTIMIZER "betas"},
    {"adam_beta1", OPTIMIZER "betas"},
    {"adam_beta2", OPTIMIZER "betas"},
    {"epsilon", OPTIMIZER "eps"},
    {"adam_epsilon", OPTIMIZER "eps"},
    {"adam_eps", OPTIMIZER "eps"},
    {"wd", OPTIMIZER "weight_decay"},
    {"l2", OPTIMIZER "weight_decay"},
    {"warmup", SCHEDULER "warmup_num_steps"},
    {"warmup_steps", SCHEDULER "warmup_num_steps"},
    {"warmup_iters", SCHEDULER "warmup_num_steps"},
    {"num_warmup_steps", SCHEDULER "warmup_num_steps"},
    {"max_steps", SCHEDULER "total_num_steps"},
    {"total_steps", SCHEDULER "total_num_steps"},
    {"train_iters", SCHEDULER "total_num_steps"},
    {"num_training_steps", SCHEDULER "total_num_steps"},
    {"max_grad_norm", "gradient_clipping"},
    {"clip_grad", "gradient_clipping"},
    {"grad_clip", "gradient_clipping"},
    {"clip_grad_norm", "gradient_clipping"},
    {"batch_size", "train_batch_size"},
    {"global_batch_size", "train_batch_size"},
    {"micro_batch_size", "train_micro_batch_size_per_gpu"},
    {"per_device_train_batch_size", "train_micro_batch_size_per_gpu"},
    {"grad_accum", "gradient_accumulation_steps"},
    {"grad_accum_steps", "gradient_accumulation_steps"},
    {"accumulate_grad_batches", "gradient_accumulation_steps"},
    {"zero", "zero_optimization"},
    {"zero_stage", "zero_optimization.stage"},
    {"logging_steps", "steps_per_print"},
};
#undef OPTIMIZER
#undef SCHEDULER

/// The key that is meant by a name of another tool's, if this type has it.
static std::string_view otherKey(std::string_view name, std::string_view type) {
  for (const OtherName &other : kOtherNames)
    if (other.name == name && (findKey(other.key, type) || isSection(other.key)))
      return other.key;
  return "";
}

std::string nearestKey(std::string_view path, std::string_view type) {
  if (std::string_view meant = otherKey(path.substr(path.rfind('.') + 1), type); !meant.empty())
    return std::string(meant);
  size_t dot = path.rfind('.');
  std::string_view section = dot == std::string_view::npos ? "" : path.substr(0, dot);
  std::string_view name = dot == std::string_view::npos ? path : path.substr(dot + 1);
  if (name.size() > 100)
    return "";
  std::string sibling = nearestWord(name, namesBelow(section, type));
  if (!sibling.empty() && nameDistance(name, sibling) <= std::max<size_t>(2, name.size() / 3))
    return section.empty() ? sibling : std::string(section) + "." + sibling;
  // The right name in the wrong place.
  std::string best;
  size_t bestDistance = std::max<size_t>(1, name.size() / 5) + 1;
  for (const Key &key : keyTable()) {
    size_t distance = editDistance(name, key.path.substr(key.path.rfind('.') + 1));
    if (distance < bestDistance && name.size() > 3) {
      bestDistance = distance;
      best = key.path;
    }
  }
  if (best.empty() && !sibling.empty())
    return section.empty() ? sibling : std::string(section) + "." + sibling;
  return best;
}

/// Types that DeepSpeed builds by name; the ones after Lamb are known, but programs do not have them yet.
static constexpr std::array<std::string_view, 23> kOptimizers = {
    "SGD",         "Adam",   "AdamW",   "Adagrad", "Lion",    "Lamb",  "OneBitAdam", "OneBitLamb",
    "ZeroOneAdam", "MuAdam", "MuAdamW", "MuSGD",   "Muon",    "ASGD",  "Adadelta",   "Adafactor",
    "Adamax",      "LBFGS",  "NAdam",   "RAdam",   "RMSprop", "Rprop", "SparseAdam"};

static constexpr std::array<std::string_view, 5> kSchedulers = {"LRRangeTest", "OneCycle", "WarmupLR",
                                                                "WarmupDecayLR", "WarmupCosineLR"};

std::span<const std::string_view> optimizerNames() { return kOptimizers; }
std::span<const std::string_view> schedulerNames() { return kSchedulers; }

std::string_view canonicalOptimizer(std::string_view name) {
  for (std::string_view known : optimizerNames())
    if (std::equal(name.begin(), name.end(), known.begin(), known.end(),
                   [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }))
      return known;
  return "";
}

std::string_view canonicalScheduler(std::string_view name) {
  const auto *found = std::find(kSchedulers.begin(), kSchedulers.end(), name);
  return found == kSchedulers.end() ? "" : *found;
}

std::string_view spell(KeyStatus status) {
  switch (status) {
  case KeyStatus::Honoured:
    return "honoured";
  case KeyStatus::Noted:
    return "noted";
  case KeyStatus::Refused:
    return "refused";
  case KeyStatus::Detail:
    return "detail";
  }
  return "";
}

/// "a | b" -> "a, b or c".
static std::string spellChoices(std::string_view limits) {
  std::vector<std::string_view> words = splitAt(limits, '|');
  std::string out;
  for (size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ("\"" + std::string(words[i]) + "\"");
  return out;
}

/// " greater than 0" and the like.
static std::string spellRange(std::string_view limits) {
  if (limits.starts_with(">="))
    return " of at least " + std::string(limits.substr(2));
  if (limits.starts_with(">"))
    return " greater than " + std::string(limits.substr(1));
  if (size_t dots = limits.find(".."); dots != std::string_view::npos)
    return " from " + std::string(limits.substr(0, dots)) + " to " + std::string(limits.substr(dots + 2));
  return limits == "even" ? " that is even and not negative" : "";
}

std::string spellExpected(const Key &key) {
  switch (key.kind) {
  case KeyKind::Bool:
    return "true or false";
  case KeyKind::AutoBool:
    return "\"auto\", true or false";
  case KeyKind::Int:
    return "an integer" + spellRange(key.limits);
  case KeyKind::Float:
    return key.limits == "null" ? "null" : "a number" + spellRange(key.limits);
  case KeyKind::AutoInt:
    return "\"auto\" or an integer" + spellRange(key.limits);
  case KeyKind::AutoFloat:
    return "\"auto\" or a number" + spellRange(key.limits);
  case KeyKind::Text:
    return "a string";
  case KeyKind::Choice:
    return spellChoices(key.limits);
  case KeyKind::Dtype:
    return "\"fp32\", \"fp16\", \"bf16\" or \"int8\"";
  case KeyKind::Ints:
    return "a list of integers" + spellRange(key.limits);
  case KeyKind::Floats:
    return "a list of " + std::string(key.limits) + " numbers";
  case KeyKind::Texts:
    return key.limits.empty() ? "a list of strings" : "a list of " + spellChoices(key.limits);
  case KeyKind::Section:
    return "an object";
  case KeyKind::Any:
    return "any value";
  }
  return "";
}

} // namespace ds::config
