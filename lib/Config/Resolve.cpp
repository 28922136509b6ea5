//===- Resolve.cpp - From a parsed tree to one checked value per key ----------------===//
//
// See Resolve.h. Two walks: down the tree, where every member finds its row or is a mistake, and down the
// table, where every row finds its value or its default.
//
//===---------------------------------------------------------------------------===//
#include "Resolve.h"
#include "Parser.h"

#include <algorithm>

namespace ds::config {

void Report::complain(const TextLocation &place, const std::string &message, std::string hint) {
  uint64_t order = place.set.empty() ? place.byte : UINT64_MAX - 1;
  complaints.push_back({spellLocation(name, place) + ": " + message, std::move(hint), order});
}

void Report::note(const TextLocation &place, const std::string &message, bool isCostly) {
  notices.push_back({spellLocation(name, place) + ": " + message, isCostly});
}

Error toError(const Report &report) {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (const Complaint &complaint : report.complaints)
    order.emplace_back(complaint.order, order.size());
  std::sort(order.begin(), order.end());
  const Complaint &first = report.complaints[order.front().second];
  Error error{ExitCode::Invalid, first.message, first.hint};
  for (size_t i = 1; i < order.size() && i < kMostComplaints; ++i) {
    const Complaint &complaint = report.complaints[order[i].second];
    error.message += "\n" + complaint.message + (complaint.hint.empty() ? "" : " (" + complaint.hint + ")");
  }
  if (order.size() > kMostComplaints)
    error.message += "\n... and " + std::to_string(order.size() - kMostComplaints) + " more";
  return error;
}

const Entry *Resolved::find(std::string_view path) const {
  auto found = index.find(path);
  return found == index.end() ? nullptr : &entries[found->second];
}

const Value &Resolved::at(std::string_view path) const {
  static const Value null;
  const Entry *entry = find(path); // absent: a parameter of another optimizer or scheduler
  return entry ? entry->value : null;
}

bool Resolved::given(std::string_view path) const {
  const Entry *entry = find(path);
  return entry && (entry->origin == Origin::File || entry->origin == Origin::Set) && !entry->isAuto &&
         !entry->value.is(Value::Kind::Null);
}

bool Resolved::isNull(std::string_view path) const { return at(path).is(Value::Kind::Null); }
bool Resolved::flag(std::string_view path) const { return at(path).boolean; }
double Resolved::number(std::string_view path) const { return at(path).number; }
std::string Resolved::text(std::string_view path) const {
  return at(path).is(Value::Kind::String) ? at(path).text : "";
}
int64_t Resolved::integer(std::string_view path) const { return maybeInteger(path).value_or(0); }

std::vector<double> Resolved::numbers(std::string_view path) const {
  std::vector<double> out;
  for (const Value &item : at(path).items)
    out.push_back(item.number);
  return out;
}

std::vector<int64_t> Resolved::integers(std::string_view path) const {
  std::vector<int64_t> out;
  for (const Value &item : at(path).items)
    out.push_back(exactInteger(item.text).value_or(0));
  return out;
}

std::vector<std::string> Resolved::texts(std::string_view path) const {
  std::vector<std::string> out;
  for (const Value &item : at(path).items)
    out.push_back(item.text);
  return out;
}

std::optional<int64_t> Resolved::maybeInteger(std::string_view path) const {
  const Value &value = at(path);
  return value.is(Value::Kind::Number) ? exactInteger(value.text) : std::nullopt;
}

std::optional<DType> Resolved::maybeDtype(std::string_view path) const {
  std::string name = text(path);
  if (name.empty())
    return std::nullopt;
  return name == "fp16" ? DType::F16 : name == "bf16" ? DType::BF16 : name == "int8" ? DType::I8 : DType::F32;
}

void Resolved::derive(std::string_view path, Value value, std::string why) {
  auto found = index.find(path);
  assert(found != index.end() && "only keys of the table are derived");
  Entry &entry = entries[found->second];
  entry.value = std::move(value);
  entry.origin = Origin::Derived;
  entry.from = "derived: " + std::move(why);
}

namespace {
/// The walk down the tree: finds the given value of every key.
class TreeWalk {
public:
  TreeWalk(bool allowUnknownKeys, Report &report) : allowUnknownKeys(allowUnknownKeys), report(report) {}

  std::map<std::string, const Value *> given;
  std::string optimizerType, schedulerType;

  void run(const Value &root) {
    optimizerType = readType(root, "optimizer");
    schedulerType = readType(root, "scheduler");
    const Value *optimizer = root.member("optimizer");
    const Value *type = optimizer ? optimizer->member("type") : nullptr;
    if (!type || type->isText("auto"))
      optimizerType = "AdamW"; // what takes its place
    walk(root, "");
  }

  /// The type whose parameters this path may name.
  std::string_view typeFor(std::string_view path) const {
    return path.starts_with("scheduler.") ? schedulerType : optimizerType;
  }

private:
  /// The canonical type of the optimizer or scheduler; a complaint when the section has none or an unknown
  /// one.
  std::string readType(const Value &root, std::string_view section) {
    const Value *object = root.member(section);
    if (!object || !object->is(Value::Kind::Object))
      return "";
    const Value *type = object->member("type");
    if (!type) {
      if (!object->items.empty())
        report.complain(object->place, quote(section) + " has no \"type\"",
                        "name one, or remove the section");
      return "";
    }
    if (!type->is(Value::Kind::String) || type->text == "auto")
      return "";
    bool scheduler = section == "scheduler";
    std::string_view known = scheduler ? canonicalScheduler(type->text) : canonicalOptimizer(type->text);
    if (known.empty()) {
      std::string near = nearestWord(type->text, scheduler ? schedulerNames() : optimizerNames());
      std::string all =
          scheduler ? "DeepSpeed has LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR and WarmupCosineLR"
                    : "DeepSpeed has Adam, AdamW, Adagrad, Lamb, Lion and SGD, among others";
      report.complain(type->place, "unknown " + std::string(section) + " type " + quote(type->text),
                      near.empty() ? all : "did you mean " + quote(near) + "?");
    }
    return std::string(known);
  }

  void unknown(const std::string &path, const Value &member) {
    bool told = report.complaints.size() + report.notices.size() < 2 * kMostComplaints; // a guess takes time
    std::string near = told ? nearestKey(path, typeFor(path)) : "";
    std::string type(path.find(".params.") == std::string::npos ? "" : typeFor(path));
    std::string message = "unknown key " + quote(path) + (type.empty() ? "" : " for type " + quote(type));
    if (!type.empty())
      // No warning: the run would have the default of what was meant, and DeepSpeed ends here too.
      report.complain(member.place, message,
                      near.empty() ? spellParameters(path, type) : "did you mean " + quote(near) + "?");
    else if (allowUnknownKeys)
      report.note(member.place,
                  message + " is ignored" + (near.empty() ? "" : "; the nearest is " + quote(near)),
                  /*isCostly=*/true);
    else
      report.complain(member.place, message,
                      near.empty() ? "drop it, or let --allow-unknown-keys pass it"
                                   : "did you mean " + quote(near) + "?");
  }

  /// "AdamW has lr, betas and eps": the parameters beside an unknown one.
  static std::string spellParameters(const std::string &path, const std::string &type) {
    std::string out = type + " has ", last;
    for (std::string_view name : namesBelow(path.substr(0, path.rfind('.')), type)) {
      out += last.empty() ? "" : (out.ends_with(' ') ? "" : ", ") + last;
      last = name;
    }
    return out + (out.ends_with(' ') ? "" : " and ") + last;
  }

  void walk(const Value &object, const std::string &path) {
    for (const Value &member : object.items) {
      std::string child = path.empty() ? member.key : path + "." + member.key;
      if (member.key.starts_with('_')) {
        report.note(member.place, quote(child) + " is taken for a comment");
        continue;
      }
      bool plain = !member.key.empty() && member.key.find('.') == std::string::npos;
      if (const Key *row = plain ? findKey(child, typeFor(child)) : nullptr) {
        given.emplace(child, &member);
        if (row->kind == KeyKind::Section && member.is(Value::Kind::Object))
          walk(member, child);
      } else if (plain && (isSection(child) || child == "optimizer.params")) {
        walkSection(member, child);
      } else {
        unknown(child, member);
      }
    }
  }

  void walkSection(const Value &member, const std::string &path) {
    bool unreadable = (path == "optimizer.params" && !hasKnownParameters(optimizerType)) ||
                      (path == "scheduler.params" && schedulerType.empty());
    if (member.is(Value::Kind::Null) || unreadable)
      return;
    if (member.isText("auto"))
      return report.note(member.place, quote(path) + " is \"auto\": it counts as absent");
    if (!member.is(Value::Kind::Object))
      return report.complain(member.place, quote(path) + " expects an object, but got " + describe(member));
    walk(member, path);
  }

  /// Whether the table has the parameters of an optimizer; the others' are left to whoever makes them real.
  static bool hasKnownParameters(std::string_view type) {
    return type == "SGD" || type == "Adam" || type == "AdamW" || type == "Adagrad" || type == "Lion" ||
           type == "Lamb";
  }

  bool allowUnknownKeys;
  Report &report;
};
} // namespace

/// Who has settled what an absent key means.
static std::string sourceOfDefault(const Key &key) {
  return key.isOwn ? "Deepstage" : "DeepSpeed " + std::string(kDeepSpeedVersion);
}

/// The entry of a given value.
static Entry makeGiven(const Key &key, const std::string &path, const Value &value, Report &report) {
  Entry entry{&key, path, defaultValue(key), Origin::File, "", false, path.ends_with("api_key")};
  entry.origin = value.place.set.empty() ? Origin::File : Origin::Set;
  entry.from = value.place.set.empty() ? report.name + ":" + std::to_string(value.place.line) + ":" +
                                             std::to_string(value.place.column)
                                       : "--set";
  bool autoIsValue = key.kind == KeyKind::AutoBool || key.kind == KeyKind::AutoInt ||
                     key.kind == KeyKind::AutoFloat || key.kind == KeyKind::Any ||
                     (key.kind == KeyKind::Choice && key.limits.starts_with("auto|"));
  if (value.isText("auto") && !autoIsValue) {
    entry.isAuto = true;
    entry.origin = Origin::Default;
    entry.from = "\"auto\" in " + entry.from + "; " + sourceOfDefault(key);
    return entry;
  }
  std::string problem, hint;
  if (std::optional<Value> checked = checkValue(key, value, problem, hint))
    entry.value = std::move(*checked);
  else
    report.complain(value.place, quote(path) + " " + problem, hint);
  return entry;
}

Resolved resolve(const Value &root, bool allowUnknownKeys, Report &report) {
  TreeWalk tree(allowUnknownKeys, report);
  tree.run(root);
  Resolved resolved;
  auto add = [&](Entry entry) {
    resolved.index.emplace(entry.path, resolved.entries.size());
    resolved.entries.push_back(std::move(entry));
  };
  for (const Key &key : keyTable()) {
    if (key.path.find('*') != std::string_view::npos) {
      for (const auto &[path, value] : tree.given)
        if (findKey(path, tree.typeFor(path)) == &key)
          add(makeGiven(key, path, *value, report));
      continue;
    }
    if (!isFor(key, tree.typeFor(key.path)))
      continue; // a parameter of another type
    auto found = tree.given.find(std::string(key.path));
    if (found != tree.given.end())
      add(makeGiven(key, std::string(key.path), *found->second, report));
    else
      add({&key, std::string(key.path), defaultValue(key), Origin::Default, sourceOfDefault(key), false,
           false});
  }
  return resolved;
}

/// Puts one value into the tree; false when an outer part of the path is not an object.
static bool insertAt(Value &root, std::string_view path, Value value) {
  std::vector<std::string_view> parts = splitAt(path, '.');
  Value *object = &root;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    Value *next = object->member(parts[i]);
    if (!next) {
      object->items.push_back(makeObject());
      next = &object->items.back();
      next->key = parts[i];
      next->place = value.place;
    } else if (next->is(Value::Kind::Null)) {
      next->kind = Value::Kind::Object;
    }
    if (!next->is(Value::Kind::Object))
      return false;
    object = next;
  }
  (void)object->take(parts.back());
  value.key = parts.back();
  object->items.push_back(std::move(value));
  return true;
}

/// Marks a value and everything in it as coming from a `--set`.
static void setLocation(Value &value, const TextLocation &place) {
  value.place = place;
  for (Value &item : value.items)
    setLocation(item, place);
}

void applySets(Value &root, const std::vector<std::string> &sets, Report &report) {
  for (const std::string &set : sets) {
    TextLocation place;
    place.set = set.substr(0, 80);
    size_t equals = set.find('=');
    std::string path = set.substr(0, equals);
    bool wellFormed = equals != std::string::npos && !path.empty() && path.front() != '.' &&
                      path.back() != '.' && path.find("..") == std::string::npos;
    if (!wellFormed) {
      report.complain(place, "expects KEY=VALUE with a dotted key",
                      "for example --set zero_optimization.stage=3");
      continue;
    }
    Result<Value> parsed = parseText(std::string_view(set).substr(equals + 1), report.name, set);
    Value value = parsed ? std::move(*parsed) : makeString(std::string_view(set).substr(equals + 1));
    setLocation(value, place);
    if (splitAt(path, '.').size() > kMaxDepth || !insertAt(root, path, std::move(value)))
      report.complain(place, "no key can lie below a value",
                      "the outer parts of " + quote(path) + " must be objects");
  }
}

} // namespace ds::config
