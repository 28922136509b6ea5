//===- ModelFile.cpp - Says what a file is that is no model -----------------------===//
//
// Readers answer for what they read, in their own terms: MLIR's parser tells of an unexpected character where
// a file of weights was given. Who mixes up files is better told what the file is, which its first bytes and
// its name's ending say, and what it is good for.
//
//===---------------------------------------------------------------------------===//
#include "ModelFile.h"

#include "Options.h"
#include "ds/Config/ForeignConfig.h"
#include "ds/Import/BuiltinModels.h"
#include "ds/Support/Descriptor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <fcntl.h>
#include <unistd.h>

using namespace ds;
using namespace ds::opt;
using llvm::StringRef;

namespace {
/// What a file is, and what to do instead.
struct Mistaken {
  std::string what, hint;
};
} // namespace

static constexpr const char *kGiveModel =
    "give a TorchScript archive (.pt), the config.json of a Hugging Face model or its folder, or MLIR";

/// Kinds of files that their first bytes give away.
static Mistaken byContent(StringRef head) {
  const std::string weights =
      "a model is given by its config.json or as TorchScript; ds-run --weights reads weights";
  if (head.size() > 9 && head[8] == '{' && llvm::support::endian::read64le(head.data()) < (uint64_t(1) << 30))
    return {"weights (safetensors)", weights};
  if (head.starts_with("GGUF"))
    return {"weights (GGUF)", weights};
  if (head.starts_with("\x93NUMPY"))
    return {"an array of NumPy", kGiveModel};
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x03") || head.starts_with("\x80\x04"))
    return {"a Python pickle", "save the model with torch.jit.save(torch.jit.script(model), ...)"};
  if (head.starts_with("PK\x03\x04"))
    return {"a zip archive",
            "the name of a TorchScript archive ends with .pt, .pth or .ts; pickled weights are no model"};
  if (head.starts_with("\x7f"
                       "ELF"))
    return {"an executable or a library", kGiveModel};
  if (head.take_front(8).contains("DSX"))
    return {"a program", "ds-run runs it"};
  if (head.starts_with("ML\xefR") || !head.contains('\0'))
    return {};
  return {"binary, and no MLIR bytecode", kGiveModel};
}

/// What an archive of torch.export is told from other zip archives by: its name.
static Mistaken byArchiveName(StringRef path, Mistaken content) {
  if (content.what != "a zip archive" || llvm::sys::path::extension(path) != ".pt2")
    return content;
  return {"an archive of torch.export, which is not read yet",
          "export it as TorchScript: torch.jit.save(torch.jit.trace(model, inputs), \"model.pt\")"};
}

/// Kinds of texts that the ending of their name gives away.
static Mistaken byName(StringRef path) {
  const std::string what = llvm::StringSwitch<std::string>(llvm::sys::path::extension(path).lower())
                               .Cases(".md", ".rst", ".txt", ".html", "a text for people")
                               .Case(".py", "Python")
                               .Case(".toml", "a file of settings")
                               .Cases(".jsonl", ".csv", ".log", "a log or a table")
                               .Default("");
  if (what == "Python")
    return {what, "export the model to TorchScript: torch.jit.save(torch.jit.script(model), \"model.pt\")"};
  return {what, kGiveModel};
}

/// What is said of a configuration of training in place of a model's.
static Mistaken asTraining(const std::string &what) {
  return {what, "give it with --config, and the model as INPUT"};
}

/// A configuration of another tool's, or YAML.
static Mistaken asForeign(StringRef text) {
  const std::optional<config::ForeignConfig> foreign = config::findForeignConfig(text);
  return foreign ? Mistaken{foreign->what, foreign->hint} : Mistaken{};
}

/// Whether a text of JSON is a configuration of DeepSpeed's in place of a model's.
static bool isTrainingConfig(StringRef text) {
  return !text.contains("\"model_type\"") &&
         (text.contains("\"zero_optimization\"") || text.contains("\"train_batch_size\"") ||
          text.contains("\"train_micro_batch_size_per_gpu\""));
}

/// The name of a model on the Hugging Face Hub that `input` gives, bare or by its address: "org/name"; empty
/// if it is none.
static StringRef hubName(StringRef input) {
  const bool isAddress = input.consume_front("https://huggingface.co/") || input.consume_front("hf.co/");
  const auto [owner, rest] = input.split('/');
  const StringRef name = isAddress ? rest.take_until([](char c) { return c == '/'; }) : rest;
  const auto isWord = [](StringRef word) {
    return !word.empty() && llvm::isAlnum(word.front()) &&
           llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.'; });
  };
  const StringRef ending = llvm::sys::path::extension(name);
  const bool isFile = llvm::is_contained({".pt", ".pth", ".ts", ".mlir", ".mlirbc", ".json"}, ending);
  if (!isWord(owner) || !isWord(name) || isFile || (!isAddress && llvm::sys::fs::exists(owner)))
    return "";
  return input.take_front(owner.size() + 1 + name.size());
}

Status ds::opt::checkModelFile(const Options &options) {
  const std::string &path = options.input;
  if (const StringRef name = hubName(path); !name.empty() && !llvm::sys::fs::exists(path))
    return Error{
        ExitCode::Io, path + ": no such file or folder",
        "of a model on the Hugging Face Hub its config.json is read: curl -LO https://huggingface.co/" +
            name.str() + "/resolve/main/config.json"};
  if (llvm::sys::path::filename(path) == "config.json" && !llvm::sys::fs::exists(path) &&
      llvm::sys::fs::is_directory(llvm::sys::path::parent_path(path)))
    return Error{ExitCode::Io, llvm::sys::path::parent_path(path).str() + ": the folder has no config.json",
                 "give the folder of a Hugging Face model, or the model's file"};
  llvm::sys::fs::file_status status;
  if (path == "-" || llvm::sys::fs::status(path, status) || !llvm::sys::fs::is_regular_file(status))
    return {};
  constexpr uint64_t kHead = 64 << 10;
  const auto buffer = llvm::MemoryBuffer::getFileSlice(path, std::min(status.getSize(), kHead), 0);
  if (!buffer)
    return {}; // said by who reads it
  const StringRef head = (*buffer)->getBuffer();
  Mistaken mistaken;
  if (options.inputKind() == planner::InputKind::Mlir) {
    mistaken = byArchiveName(path, byContent(head));
    if (mistaken.what.empty())
      mistaken = asForeign(head);
    if (mistaken.what.empty())
      mistaken = byName(path);
  } else if (options.inputKind() == planner::InputKind::HfConfig && isTrainingConfig(head)) {
    mistaken = asTraining("a training configuration");
  }
  if (mistaken.what.empty())
    return {};
  return Error{ExitCode::Invalid, path + " is no model: it is " + mistaken.what, mistaken.hint};
}

Status ds::opt::checkTerminal(const Options &options, bool writesBytecode) {
  const bool isProgram = options.emit == Emit::Program;
  if (!isProgram && !writesBytecode)
    return {};
  bool isTerminal = false;
  if (options.output == "-") {
    isTerminal = isatty(STDOUT_FILENO) == 1;
  } else {
    const Descriptor file(open(options.output.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    isTerminal = isatty(file.get()) == 1; // a file that is not there yet is none
  }
  if (!isTerminal)
    return {};
  return Error{ExitCode::Usage,
               std::string(isProgram ? "a program" : "bytecode") + " is binary, and the output is a terminal",
               "name a file with -o, or send it through a pipe"};
}

std::string ds::opt::modelFile(const std::string &input) {
  const bool isName = !llvm::sys::fs::exists(input) && !builtinModelText(input).empty();
  if (!llvm::sys::fs::is_directory(input) && (!isName || llvm::StringRef(input).ends_with(".json")))
    return input;
  llvm::SmallString<256> file(input);
  llvm::sys::path::append(file, "config.json");
  return file.str().str();
}
