//===- Export.cpp - A checkpoint as a folder of a Hugging Face model -------------------===//

#include "ds/Runtime/CheckpointTool/Export.h"

#include "ExportFiles.h"
#include "Files/Text.h"
#include "Words.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Files/FileLayer.h"
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
  std::string text = manifest.modelConfig;
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

/// Every file of the folder, the index last.
Status writeFiles(const Checkpoint &checkpoint, const std::string &folder, const std::string &config,
                  const std::vector<std::vector<ExportTensor>> &shards, ExportReport &report) {
  for (size_t i = 0; i < shards.size(); ++i) {
    report.files.push_back(shardName(i, shards.size()));
    if (Status status = writeShard(checkpoint, folder + "/" + report.files.back(), shards[i]); !status)
      return status;
  }
  const auto writeText = [&](const char *name, const std::string &text) {
    report.files.emplace_back(name);
    return writeFileAtomically(folder + "/" + name, text);
  };
  report.hasConfig = !config.empty();
  if (report.hasConfig)
    if (Status status = writeText("config.json", config); !status)
      return status;
  return shards.size() > 1 ? writeText("model.safetensors.index.json", spellIndex(shards)) : Status();
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
  const Result<std::string> config = configText(manifest, options.config);
  if (!config)
    return config.error();
  Result<std::vector<ExportTensor>> tensors = listExport(manifest, options);
  if (!tensors)
    return tensors.error();
  ExportReport report;
  for (const ExportTensor &tensor : *tensors) {
    ++report.tensors;
    report.bytes += tensor.bytes;
    if (!options.tied)
      report.tiedNames.insert(report.tiedNames.end(), tensor.tensor->aliases.begin(),
                              tensor.tensor->aliases.end());
  }
  Result<NewFolder> folder = NewFolder::make(target);
  if (!folder)
    return folder.error();
  if (Status status = writeFiles(*checkpoint, folder->name(), *config,
                                 cutIntoShards(std::move(*tensors), options.maxShardBytes), report);
      !status)
    return status.error();
  if (Status status = folder->keep(target); !status)
    return status.error();
  return report;
}

} // namespace ds::rt
