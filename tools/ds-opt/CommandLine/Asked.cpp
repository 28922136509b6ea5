//===- Asked.cpp - What the options ask for, taken together ------------------------===//
#include "Options.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ds;
using namespace ds::opt;

std::string Options::weightsOutput() const {
  if (emit != Emit::Program || inputKind() != InputKind::TorchScript || weights != "archive")
    return "";
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(output, status) && !llvm::sys::fs::is_regular_file(status))
    return "";
  llvm::SmallString<256> path(output);
  llvm::sys::path::replace_extension(path, ".safetensors");
  return path.str().str();
}

bool Options::isPlainMlirOpt() const {
  return emit == Emit::Default && inputKind() == InputKind::Mlir && diff.empty() && !printConfig &&
         planJson.empty() && !asksForPictures() && !explainPeak && basis == "auto" && config.empty() &&
         sets.empty() && phase == "model" && cluster.empty() && question().empty() && partOption().empty() &&
         entry.empty() && !length;
}

std::string Options::clusterName() const {
  if (!cluster.empty() || !llvm::StringRef(target).starts_with("cuda:"))
    return cluster;
  return target == "cuda:sm_80"   ? "a100-80g"
         : target == "cuda:sm_86" ? "rtx3090"
         : target == "cuda:sm_89" ? "rtx4090"
                                  : "h100-80g";
}

std::optional<report::TrainingRun> Options::run() const {
  if (!tokens)
    return std::nullopt;
  return report::TrainingRun{*tokens, pricePerHour};
}

std::string Options::question() const {
  return whatIf               ? "--what-if"
         : maxBatch           ? "--max-batch"
         : maxSeq             ? "--max-seq"
         : planChoice.empty() ? ""
                              : "--plan";
}
