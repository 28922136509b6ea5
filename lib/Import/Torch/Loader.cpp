//===- Loader.cpp - Loads the archive with LibTorch -----------------------------===//
//
// An archive of a newer PyTorch may call operators that the LibTorch linked here does not know. Where the
// import knows what they mean, their schemas are registered first: that is all that loading needs.
//
//===---------------------------------------------------------------------------===//

#include "Loader.h"
#include "../Guard/PlainWords.h"
#include "Failure.h"
#include "Operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/library.h>
#include <torch/version.h>

#include <cerrno>
#include <cstring>
#include <new>

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::ts {

namespace {

/// Reads the archive through the descriptor that was checked: the name may by now be another file.
class FileReader final : public caffe2::serialize::ReadAdapterInterface {
public:
  explicit FileReader(int fd) : fd(fd) {
    struct stat info = {};
    if (fstat(fd, &info) == 0)
      bytes = static_cast<size_t>(info.st_size);
  }
  size_t size() const override { return bytes; }
  size_t read(uint64_t position, void *buffer, size_t count, const char *) const override {
    size_t done = 0;
    while (done < count) {
      ssize_t got =
          pread(fd, static_cast<char *>(buffer) + done, count - done, static_cast<off_t>(position + done));
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        throw Failure({ExitCode::Io, std::string("cannot read the archive: ") + std::strerror(errno), ""});
      if (got == 0)
        break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

private:
  int fd;
  size_t bytes = 0;
};

} // namespace

/// Schemas of operators newer than this LibTorch, which the operator table can import.
static void registerNewerOperators() {
  static constexpr std::pair<const char *, const char *> schemas[] = {
      {"aten::scaled_dot_product_attention",
       "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
       "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"},
      {"aten::rms_norm",
       "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor"},
  };
  static torch::Library library(torch::Library::FRAGMENT, "aten", c10::nullopt, __FILE__, __LINE__);
  for (const auto &[name, schema] : schemas)
    if (torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)).empty())
      library.def(schema);
}

/// Lists the operators that the archive's code calls and that nobody here knows; throws where there are any.
static void refuseUnknownOperators(const Request &request) {
  std::string list;
  size_t count = 0;
  for (const std::string &name : request.operatorNames) {
    if (!torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)).empty() || findOperator(name) ||
        findContainerOperator(name))
      continue;
    const char *version = introducedIn(name);
    list += "\n  " + name + (version ? std::string(": introduced by PyTorch ") + version : "");
    ++count;
  }
  if (count > 0)
    fail("the archive calls " + std::to_string(count) + (count == 1 ? " operator that" : " operators that") +
             " the LibTorch of this build does not know:" + list,
         "export the model with operators of PyTorch " + std::string(TORCH_VERSION) + " or older");
}

/// LibTorch believes the size that the pickle gives for a tensor, also where its record is shorter: what is
/// beyond belongs to others. Throws where less memory was taken than the tensor claims.
static void checkMemory(const at::Tensor &tensor, const std::string &name) {
  if (!tensor.defined() || !tensor.has_storage() || !tensor.device().is_cpu())
    return;
  const at::DataPtr &memory = tensor.storage().data_ptr();
  if (!memory.get() || memory.get_deleter() != at::getCPUAllocator()->raw_deleter())
    return;
  size_t claimed = tensor.storage().nbytes(), taken = malloc_usable_size(memory.get_context());
  if (claimed > taken)
    throw Failure({ExitCode::Corrupt,
                   "tensor '" + name + "' claims " + std::to_string(claimed) +
                       " bytes, but its record holds at most " + std::to_string(taken),
                   "copy the file again, or export it again with torch.jit.save"});
}

/// Checks the tensors that the module and all below it hold, alone or in lists.
static void checkTensors(const torch::jit::Module &module) {
  for (const auto &attribute : module.named_attributes()) {
    if (attribute.value.isTensor())
      checkMemory(attribute.value.toTensor(), attribute.name);
    if (attribute.value.isTensorList())
      for (const at::Tensor &tensor : attribute.value.toTensorVector())
        checkMemory(tensor, attribute.name);
  }
}

torch::jit::Module loadModule(const Request &request) {
  registerNewerOperators();
  try {
    torch::jit::Module module = torch::jit::load(std::make_shared<FileReader>(request.modelFd), at::kCPU);
    checkTensors(module);
    return module;
  } catch (const Failure &) {
    throw;
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &error) {
    if (tellsOfMemory(error.what()))
      throw std::bad_alloc();
    refuseUnknownOperators(request);
    throw Failure({ExitCode::Corrupt, "LibTorch cannot load the archive: " + plainWords(error.what()),
                   "export the model again with torch.jit.save"});
  }
}

} // namespace ds::ts
