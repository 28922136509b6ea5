//===- Manifest.cpp - Reads what a checkpoint says of itself -----------------------===//
//
// Manifests come from disks, which lie, and from strangers. The digest finds damage; of what is well formed
// every value is asked for its type before it is used, and every name whether it stays in the directory, and
// whether it is the only one.
//
//===---------------------------------------------------------------------------===//

#include "ds/Runtime/Checkpoint/Manifest.h"

#include "Files/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace ds::rt {

/// For reading: a million keys are found by a tree, not by looking through all of them.
using Document = nlohmann::json;

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
  /// A number, or NaN where there is null.
  double real(const Document &object, const char *key) {
    const Document &value = at(object, key);
    if (!value.is_number() && !value.is_null())
      fail(key);
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
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

std::vector<int64_t> readSizes(Fields &fields, const Document &object, const char *key) {
  std::vector<int64_t> sizes;
  for (const Document &size : fields.list(object, key))
    sizes.push_back(size.is_number_unsigned() && size.get<uint64_t>() <= INT64_MAX ? size.get<int64_t>()
                                                                                   : (fields.fail(key), 0));
  return sizes;
}

Layout readLayout(Fields &fields, const Mesh &mesh, const Document &object) {
  Layout layout;
  if (fields.has(object, "view"))
    layout.view = readSizes(fields, object, "view");
  if (fields.has(object, "existing"))
    layout.existing = fields.number(object, "existing");
  if (fields.has(object, "pieces"))
    layout.pieces = readSizes(fields, object, "pieces");
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
  tensor.shape = readSizes(fields, object, "shape");
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
         !isManifestName(name) && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
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

/// What a part says of all parts.
void readParts(Fields &fields, const Document &object, Manifest &manifest) {
  manifest.save = fields.text(object, "save");
  manifest.parts = {static_cast<uint32_t>(fields.number(object, "part", UINT32_MAX))};
  for (const Document &each : fields.list(object, "of")) {
    CheckpointNode node{fields.text(each, "host"), {}};
    for (const Document &rank : fields.list(each, "ranks"))
      node.ranks.push_back(rank.is_number_unsigned() && rank.get<uint64_t>() < manifest.mesh.size()
                               ? rank.get<uint32_t>()
                               : (fields.fail("ranks"), 0));
    if (std::ranges::any_of(node.host, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      fields.fail("host");
    manifest.nodes.push_back(std::move(node));
  }
  if (manifest.save.empty() || manifest.nodes.size() < 2 || manifest.parts.front() >= manifest.nodes.size())
    fields.fail("nodes");
  for (CheckpointFile &file : manifest.files)
    file.node = manifest.parts.front();
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
  if (fields.has(document, "run"))
    manifest.run = fields.text(document, "run");
  manifest.seed = fields.number(document, "seed");
  const Document &data = fields.at(document, "data");
  manifest.data = {fields.text(data, "sign"), fields.number(data, "samples"), fields.number(data, "tokens"),
                   fields.flag(data, "shuffle"), fields.number(data, "seed")};
  if (fields.has(document, "evaluations"))
    for (const Document &each : fields.list(document, "evaluations"))
      manifest.evaluations.push_back({fields.text(each, "name"), fields.real(each, "loss")});
  const Document &program = fields.at(document, "program");
  manifest.planHash = fields.text(program, "plan_hash");
  manifest.target = fields.text(program, "target");
  manifest.configText = fields.text(program, "config");
  manifest.microBatch = static_cast<uint32_t>(fields.number(program, "micro_batch", UINT32_MAX));
  manifest.accumulation = static_cast<uint32_t>(fields.number(program, "accumulation", UINT32_MAX));
  manifest.optimizer =
      fields.has(program, "optimizer") ? fields.text(program, "optimizer") : optimizerOf(manifest.configText);
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
  if (fields.has(*document, "nodes"))
    readParts(fields, fields.at(*document, "nodes"), manifest);
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

bool isManifestName(std::string_view name) {
  return name == kManifestName || (name.starts_with("manifest-") && name.ends_with(".json"));
}

Status addPart(Manifest &manifest, Manifest part, const std::string &path) {
  const auto sameTensor = [](const CheckpointTensor &a, const CheckpointTensor &b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
  };
  if (part.save != manifest.save || part.step != manifest.step || part.nodes != manifest.nodes ||
      part.chunkBytes != manifest.chunkBytes ||
      !std::ranges::equal(part.tensors, manifest.tensors, sameTensor))
    return corrupt(path, "is of another save than the other parts beside it");
  if (std::ranges::find(manifest.parts, part.parts.front()) != manifest.parts.end())
    return corrupt(path, "is of a part that another manifest beside it is of");
  manifest.parts.push_back(part.parts.front());
  manifest.files.insert(manifest.files.end(), part.files.begin(), part.files.end());
  Fields fields;
  checkNames(fields, manifest);
  return fields.wrong.empty() ? Status() : corrupt(path, "has a file that another part has");
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
