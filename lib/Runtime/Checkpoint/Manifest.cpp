//===- Manifest.cpp - What a checkpoint says of itself -----------------------------===//
//
// Manifests come from disks, which lie, and from strangers. The digest finds damage; of what is well formed
// every value is asked for its type before it is used, and every name whether it stays in the directory, and
// whether it is the only one.
//
//===---------------------------------------------------------------------------===//

#include "ds/Runtime/Checkpoint/Manifest.h"

#include "Formats/Text.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace ds::rt {

/// For writing: keys stay in the order in which people read them.
using Json = nlohmann::ordered_json;
/// For reading: a million keys are found by a tree, not by looking through all of them.
using Document = nlohmann::json;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Json spellAxes(const Mesh &mesh, AxisSet axes) {
  Json names = Json::array();
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (axes.has(axis))
      names.push_back(mesh.axes()[axis].name);
  return names;
}

static Json spellLayout(const Mesh &mesh, const Layout &layout) {
  Json object = Json::object();
  if (!layout.cuts.empty()) {
    object["cuts"] = Json::array();
    for (AxisSet cut : layout.cuts)
      object["cuts"].push_back(spellAxes(mesh, cut));
  }
  if (layout.isBucketed()) {
    object["bucket"] = spellAxes(mesh, layout.bucket);
    object["offset"] = layout.offset;
    object["shard_elements"] = layout.shardElements;
  }
  return object;
}

static Json spellTensor(const Mesh &mesh, const CheckpointTensor &tensor) {
  Json object = {{"name", tensor.name},
                 {"role", spell(tensor.role)},
                 {"dtype", spell(tensor.dtype)},
                 {"shape", tensor.shape}};
  if (!tensor.owner.empty())
    object["owner"] = tensor.owner;
  if (!tensor.aliases.empty())
    object["aliases"] = tensor.aliases;
  if (tensor.trainable)
    object["trainable"] = true;
  if (tensor.held != tensor.dtype)
    object["held"] = spell(tensor.held);
  if (Json layout = spellLayout(mesh, tensor.layout); !layout.empty())
    object["layout"] = std::move(layout);
  return object;
}

static Json spellFile(const CheckpointFile &file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"digests", file.digests}};
}

std::string spellFiles(std::span<const CheckpointFile> files) {
  Json list = Json::array();
  for (const CheckpointFile &file : files)
    list.push_back(spellFile(file));
  return list.dump();
}

/// One entry a line, so that people can read what programs write.
static void appendList(std::string &text, const char *key, const std::vector<Json> &entries) {
  text += std::string(" \"") + key + "\": [";
  for (size_t i = 0; i < entries.size(); ++i)
    text += (i ? ",\n  " : "\n  ") + entries[i].dump(-1, ' ', false, Json::error_handler_t::replace);
  text += "]";
}

std::string spellManifest(const Manifest &manifest) {
  Json head = {{"format", "deepstage-checkpoint"},
               {"version", kCheckpointFormat},
               {"step", manifest.step},
               {"writer", manifest.writer},
               {"seed", manifest.seed},
               {"data",
                {{"sign", manifest.data.sign},
                 {"samples", manifest.data.samples},
                 {"tokens", manifest.data.tokens},
                 {"shuffle", manifest.data.shuffle},
                 {"seed", manifest.data.seed}}},
               {"program",
                {{"plan_hash", manifest.planHash},
                 {"target", manifest.target},
                 {"micro_batch", manifest.microBatch},
                 {"accumulation", manifest.accumulation},
                 {"config", manifest.configText}}},
               {"mesh", Json::array()},
               {"chunk_bytes", manifest.chunkBytes}};
  if (!manifest.modelConfig.empty())
    head["model_config"] = manifest.modelConfig;
  for (const MeshAxis &axis : manifest.mesh.axes())
    head["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}});
  std::string text;
  for (const auto &[key, value] : head.items())
    text +=
        " " + Json(key).dump() + ": " + value.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
  std::vector<Json> entries;
  for (const CheckpointTensor &tensor : manifest.tensors)
    entries.push_back(spellTensor(manifest.mesh, tensor));
  appendList(text, "tensors", entries);
  text += ",\n";
  entries.clear();
  for (const CheckpointFile &file : manifest.files)
    entries.push_back(spellFile(file));
  appendList(text, "files", entries);
  text += "\n}\n";
  return "{\"digest\": \"" + digestOf(std::as_bytes(std::span(text))) + "\",\n" + text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Reads values of known type from a parsed document and remembers the first that is wrong.
class Fields {
public:
  const Document &at(const Document &object, const char *key) {
    static const Document none;
    if (!object.is_object())
      return fail(key), none;
    const auto found = object.find(key);
    return found == object.end() ? (fail(key), none) : *found;
  }
  bool has(const Document &object, const char *key) const {
    return object.is_object() && object.contains(key);
  }

  std::string text(const Document &object, const char *key) {
    const Document &value = at(object, key);
    return value.is_string() ? value.get<std::string>() : (fail(key), std::string());
  }
  uint64_t number(const Document &object, const char *key, uint64_t most = UINT64_MAX) {
    const Document &value = at(object, key);
    if (!value.is_number_unsigned() || value.get<uint64_t>() > most)
      return fail(key), 0;
    return value.get<uint64_t>();
  }
  bool flag(const Document &object, const char *key) {
    const Document &value = at(object, key);
    return value.is_boolean() ? value.get<bool>() : (fail(key), false);
  }
  /// The list of that name; an empty one if it is none.
  const Document &list(const Document &object, const char *key) {
    static const Document none = Document::array();
    const Document &value = at(object, key);
    return value.is_array() ? value : (fail(key), none);
  }
  std::vector<std::string> texts(const Document &object, const char *key) {
    std::vector<std::string> all;
    for (const Document &value : list(object, key))
      all.push_back(value.is_string() ? value.get<std::string>() : (fail(key), std::string()));
    return all;
  }
  /// Types of whole bytes only: elements of tensors have addresses.
  FileDType dtype(const Document &object, const char *key) {
    const std::optional<FileDType> dtype = parseFileDType(text(object, key));
    return dtype && bitSize(*dtype) >= 8 ? *dtype : (fail(key), FileDType::F32);
  }

  void fail(const char *key) {
    if (wrong.empty())
      wrong = key;
  }
  std::string wrong; ///< key of the first value that is missing or of another kind
};

Mesh readMesh(Fields &fields, const Document &document) {
  std::vector<MeshAxis> axes;
  uint64_t ranks = 1;
  for (const Document &axis : fields.list(document, "mesh")) {
    axes.push_back({fields.text(axis, "axis"), static_cast<uint32_t>(fields.number(axis, "size", 1 << 24))});
    ranks *= axes.back().size;
    if (ranks == 0 || ranks > UINT32_MAX)
      return fields.fail("mesh"), Mesh();
  }
  Mesh mesh(std::move(axes));
  if (!mesh.findMistake(static_cast<uint32_t>(ranks)).empty())
    return fields.fail("mesh"), Mesh();
  return mesh;
}

AxisSet readAxes(Fields &fields, const Mesh &mesh, const Document &names) {
  AxisSet axes;
  if (!names.is_array())
    return fields.fail("layout"), axes;
  for (const Document &name : names) {
    const std::optional<AxisSet> found =
        name.is_string() ? mesh.find(name.get<std::string>()) : std::optional<AxisSet>();
    if (!found)
      return fields.fail("layout"), axes;
    axes = axes | *found;
  }
  return axes;
}

Layout readLayout(Fields &fields, const Mesh &mesh, const Document &object) {
  Layout layout;
  if (fields.has(object, "cuts"))
    for (const Document &cut : fields.list(object, "cuts"))
      layout.cuts.push_back(readAxes(fields, mesh, cut));
  if (fields.has(object, "bucket")) {
    layout.bucket = readAxes(fields, mesh, fields.at(object, "bucket"));
    layout.offset = fields.number(object, "offset");
    layout.shardElements = fields.number(object, "shard_elements");
  }
  return layout;
}

std::optional<Role> parseRole(const std::string &text) {
  for (Role role : {Role::Parameter, Role::Buffer, Role::Moment, Role::Scalar})
    if (text == spell(role))
      return role;
  return std::nullopt;
}

CheckpointTensor readTensor(Fields &fields, const Mesh &mesh, const Document &object) {
  CheckpointTensor tensor;
  tensor.name = fields.text(object, "name");
  if (const std::optional<Role> role = parseRole(fields.text(object, "role")))
    tensor.role = *role;
  else
    fields.fail("role");
  tensor.dtype = fields.dtype(object, "dtype");
  tensor.held = fields.has(object, "held") ? fields.dtype(object, "held") : tensor.dtype;
  for (const Document &size : fields.list(object, "shape"))
    tensor.shape.push_back(size.is_number_unsigned() && size.get<uint64_t>() <= INT64_MAX
                               ? size.get<int64_t>()
                               : (fields.fail("shape"), 0));
  int64_t elements = 0;
  if (!checkedProduct(tensor.shape, elements))
    fields.fail("shape");
  if (fields.has(object, "owner"))
    tensor.owner = fields.text(object, "owner");
  if (fields.has(object, "aliases"))
    tensor.aliases = fields.texts(object, "aliases");
  tensor.trainable = fields.has(object, "trainable") && fields.flag(object, "trainable");
  if (fields.has(object, "layout"))
    tensor.layout = readLayout(fields, mesh, fields.at(object, "layout"));
  if (!findMistake(mesh, tensor.layout, tensor.shape).empty())
    fields.fail("layout");
  return tensor;
}

/// Whether a name from a manifest is that of a file beside it.
bool isPlain(const std::string &name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." && name != kManifestName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

std::vector<CheckpointFile> readFiles(Fields &fields, const Document &list) {
  std::vector<CheckpointFile> files;
  for (const Document &object : list) {
    files.push_back(
        {fields.text(object, "name"), fields.number(object, "bytes"), fields.texts(object, "digests")});
    if (!isPlain(files.back().name))
      fields.fail("files");
  }
  return files;
}

/// Whether each name of a tensor, as a whole one or as an alias, stands for one tensor, and each file once.
void checkNames(Fields &fields, const Manifest &manifest) {
  std::unordered_set<std::string_view> tensors, files;
  for (const CheckpointTensor &tensor : manifest.tensors) {
    bool isNew = tensors.insert(tensor.name).second;
    for (const std::string &alias : tensor.aliases)
      isNew &= tensors.insert(alias).second;
    if (!isNew)
      fields.fail("tensors");
  }
  for (const CheckpointFile &file : manifest.files)
    if (!files.insert(file.name).second)
      fields.fail("files");
}

Error corrupt(const std::string &path, const std::string &what, const std::string &hint = "") {
  return Error{ExitCode::Corrupt, quote(path) + ": " + what, hint};
}

/// The document behind the digest, or what is wrong with it.
Result<Document> openDocument(std::string_view text, const std::string &path) {
  static constexpr std::string_view kBegin = "{\"digest\": \"", kEnd = "\",\n";
  const size_t body = kBegin.size() + 32 + kEnd.size();
  if (text.size() > kMaxManifestBytes)
    return corrupt(path, "has " + std::to_string(text.size()) + " bytes; the limit is " +
                             std::to_string(kMaxManifestBytes));
  if (text.size() < body || !text.starts_with(kBegin) || text.substr(kBegin.size() + 32, kEnd.size()) != kEnd)
    return corrupt(path, "is not the manifest of a checkpoint");
  const std::string digest = digestOf(std::as_bytes(std::span(text.substr(body))));
  if (text.substr(kBegin.size(), 32) != digest)
    return corrupt(path, "is damaged: the digest of what it says is not the one in its first line");
  Document document = Document::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object())
    return corrupt(path, "is not a JSON object");
  return document;
}

void readHead(Fields &fields, const Document &document, Manifest &manifest) {
  manifest.step = fields.number(document, "step");
  manifest.writer = fields.text(document, "writer");
  manifest.seed = fields.number(document, "seed");
  const Document &data = fields.at(document, "data");
  manifest.data = {fields.text(data, "sign"), fields.number(data, "samples"), fields.number(data, "tokens"),
                   fields.flag(data, "shuffle"), fields.number(data, "seed")};
  const Document &program = fields.at(document, "program");
  manifest.planHash = fields.text(program, "plan_hash");
  manifest.target = fields.text(program, "target");
  manifest.configText = fields.text(program, "config");
  manifest.microBatch = static_cast<uint32_t>(fields.number(program, "micro_batch", UINT32_MAX));
  manifest.accumulation = static_cast<uint32_t>(fields.number(program, "accumulation", UINT32_MAX));
  if (fields.has(document, "model_config"))
    manifest.modelConfig = fields.text(document, "model_config");
  manifest.chunkBytes = fields.number(document, "chunk_bytes", uint64_t(1) << 40);
}

} // namespace

Result<Manifest> parseManifest(std::string_view text, const std::string &path) {
  Result<Document> document = openDocument(text, path);
  if (!document)
    return document.error();
  Fields fields;
  if (fields.text(*document, "format") != "deepstage-checkpoint")
    return corrupt(path, "is not the manifest of a checkpoint");
  if (const uint64_t version = fields.number(*document, "version"); version > kCheckpointFormat)
    return corrupt(path,
                   "has form " + std::to_string(version) + ", but this build reads forms up to " +
                       std::to_string(kCheckpointFormat),
                   "use the build that has written it, or a newer one");
  Manifest manifest;
  readHead(fields, *document, manifest);
  manifest.mesh = readMesh(fields, *document);
  for (const Document &tensor : fields.list(*document, "tensors"))
    manifest.tensors.push_back(readTensor(fields, manifest.mesh, tensor));
  manifest.files = readFiles(fields, fields.list(*document, "files"));
  checkNames(fields, manifest);
  if (manifest.chunkBytes == 0 || manifest.chunkBytes % 8 != 0)
    fields.fail("chunk_bytes");
  for (const CheckpointFile &file : manifest.files)
    if (fields.wrong.empty() &&
        file.digests.size() != file.bytes / manifest.chunkBytes + (file.bytes % manifest.chunkBytes > 0))
      fields.fail("digests");
  if (!fields.wrong.empty())
    return corrupt(path, "'" + fields.wrong + "' is missing or not what a manifest has there");
  return manifest;
}

Result<std::vector<CheckpointFile>> parseFiles(std::string_view text) {
  const Document list = Document::parse(text, nullptr, /*allow_exceptions=*/false);
  Fields fields;
  if (!list.is_array())
    return Error{ExitCode::Internal, "the list of a rank's files is none", ""};
  std::vector<CheckpointFile> files = readFiles(fields, list);
  if (!fields.wrong.empty())
    return Error{ExitCode::Internal, "the list of a rank's files has no '" + fields.wrong + "'", ""};
  return files;
}

} // namespace ds::rt
