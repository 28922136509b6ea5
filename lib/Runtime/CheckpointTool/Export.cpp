//===- Export.cpp - A checkpoint as a folder of a Hugging Face model -------------------===//

#include "ds/Runtime/CheckpointTool/Export.h"

#include "ExportFiles.h"
#include "Files/Text.h"
#include "Words.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Support/Adapters.h"
#include "ds/Support/ModelConfig.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace fs = std::filesystem;
namespace {

/// The text that becomes config.json; empty: there is none.
Result<std::string> configText(const Manifest &manifest, const std::string &path) {
  std::string text = withoutAdapterConfig(manifest.modelConfig);
  if (!path.empty()) {
    const Result<MappedFile> file = MappedFile::open(path);
    if (!file)
      return file.error();
    const std::span<const std::byte> bytes = file->bytes();
    text.assign(reinterpret_cast<const char *>(bytes.data()),
                std::min(bytes.size(), kMaxModelConfigBytes + 1));
  }
  if (!isModelConfig(text) && !(path.empty() && text.empty()))
    return Error{ExitCode::Invalid,
                 fmt::format("{} is not a config.json: expects one JSON object",
                             path.empty() ? "what the checkpoint keeps of its model" : quote(path)),
                 path.empty() ? "give one with --config" : ""};
  return text;
}

/// Refuses what a folder cannot be made at.
Status checkTarget(const std::string &path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status() : Status(ioError("write", path, errno));
  if (!S_ISDIR(info.st_mode))
    return ioError("write a folder", path, EEXIST, "name a new folder");
  std::error_code error;
  const bool isEmpty = fs::is_empty(path, error);
  if (error)
    return ioError("look through", path, error.value());
  return isEmpty ? Status() : Status(ioError("write", path, ENOTEMPTY, "name a new folder"));
}

/// A folder under another name, which goes away unless it is kept.
class NewFolder {
public:
  static Result<NewFolder> make(const std::string &target) {
    std::string path = target + ".tmp-XXXXXX";
    if (!::mkdtemp(path.data()))
      return ioError("make a folder beside", target, errno);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::chmod(path.c_str(), 0777 & ~mask) != 0) // mkdtemp's is for the owner alone
      return ioError("make", path, errno);
    return NewFolder(std::move(path));
  }
  /// Gives it the name of `target`, durably.
  Status keep(const std::string &target) {
    FileLayer &files = systemFiles();
    if (const int failure = files.syncDirectory(path))
      return ioError("sync", path, failure);
    if (const int failure = files.rename(path, target))
      return ioError("give its name to the finished folder", target, failure);
    path.clear();
    const std::string parent = fs::path(target).parent_path();
    if (const int failure = files.syncDirectory(parent.empty() ? "." : parent))
      return ioError("sync the directory of", target, failure);
    return {};
  }
  const std::string &name() const { return path; }

  NewFolder(NewFolder &&other) noexcept : path(std::exchange(other.path, {})) {}
  ~NewFolder() {
    std::error_code unused;
    if (!path.empty())
      fs::remove_all(path, unused);
  }

private:
  explicit NewFolder(std::string path) : path(std::move(path)) {}
  std::string path; ///< empty when it was kept or moved
};

/// Where files go and what goes into them.
struct Folder {
  std::string path;
  std::string config;  ///< the text that becomes config.json; empty: there is none
  std::string adapter; ///< the text that becomes adapter_config.json; empty: the tensors are the model's own
};

/// Every file of the folder, the index last.
Status writeFiles(const Checkpoint &checkpoint, const Folder &folder,
                  const std::vector<std::vector<ExportTensor>> &shards, AdapterMerger *merger,
                  ExportReport &report) {
  for (size_t i = 0; i < shards.size(); ++i) {
    report.files.push_back(folder.adapter.empty() ? shardName(i, shards.size()) : kAdapterWeightsFile);
    if (Status status = writeShard(checkpoint, folder.path + "/" + report.files.back(), shards[i], merger);
        !status)
      return status;
  }
  const auto writeText = [&](const char *name, const std::string &text) {
    report.files.emplace_back(name);
    return writeFileAtomically(folder.path + "/" + name, text);
  };
  if (!folder.adapter.empty())
    return writeText(kAdapterConfigFile, folder.adapter);
  report.hasConfig = !folder.config.empty();
  if (report.hasConfig)
    if (Status status = writeText("config.json", folder.config); !status)
      return status;
  return shards.size() > 1 ? writeText("model.safetensors.index.json", spellIndex(shards)) : Status();
}

/// What `options` ask of a model with, or without, the adapters that `adapter` describes.
Status checkAdapterOptions(const ExportOptions &options, const std::string &adapter) {
  if (options.merge && adapter.empty())
    return Error{ExitCode::Invalid, "--merge: the checkpoint has no adapters", "leave --merge out"};
  if (!adapter.empty() && !options.merge && (options.tied || !options.config.empty()))
    return Error{ExitCode::Invalid,
                 "--tied and --config are of a model's weights, but what is exported are its adapters",
                 "add --merge to export the weights with the adapters added"};
  return {};
}

/// Lists what is exported, in its files, and counts it.
Result<std::vector<std::vector<ExportTensor>>>
listFiles(const Manifest &manifest, const ExportOptions &options, bool inOne, ExportReport &report) {
  Result<std::vector<ExportTensor>> tensors = listExport(manifest, options);
  if (!tensors)
    return tensors.error();
  for (const ExportTensor &tensor : *tensors) {
    ++report.tensors;
    report.bytes += tensor.bytes;
    if (!options.tied)
      report.tiedNames.insert(report.tiedNames.end(), tensor.tensor->aliases.begin(),
                              tensor.tensor->aliases.end());
  }
  return cutIntoShards(std::move(*tensors), inOne ? UINT64_MAX : options.maxShardBytes);
}

} // namespace

Result<ExportReport> exportCheckpoint(const ExportOptions &options) {
  std::string target = options.to;
  while (target.size() > 1 && target.ends_with('/'))
    target.pop_back();
  if (Status status = checkTarget(target); !status)
    return status.error();
  const Result<Checkpoint> checkpoint = Checkpoint::open(options.from);
  if (!checkpoint)
    return checkpoint.error();
  const Manifest &manifest = checkpoint->manifest();
  const std::string adapter = descriptionOfAdapters(manifest);
  if (Status status = checkAdapterOptions(options, adapter); !status)
    return status.error();
  const Result<std::string> config = configText(manifest, options.config);
  if (!config)
    return config.error();
  std::optional<AdapterMerger> merger;
  if (options.merge) {
    const Result<AdapterRequest> request = parseAdapterConfig(adapter, "the checkpoint's peft_config");
    if (!request)
      return request.error();
    merger.emplace(*checkpoint, *request);
  }
  ExportReport report;
  report.isAdapter = !adapter.empty() && !options.merge;
  const auto files = listFiles(manifest, options, report.isAdapter, report);
  if (!files)
    return files.error();
  Result<NewFolder> folder = NewFolder::make(target);
  if (!folder)
    return folder.error();
  const Folder contents{folder->name(), *config, report.isAdapter ? adapter : std::string()};
  if (Status status = writeFiles(*checkpoint, contents, *files, merger ? &*merger : nullptr, report); !status)
    return status.error();
  if (Status status = folder->keep(target); !status)
    return status.error();
  return report;
}

} // namespace ds::rt
