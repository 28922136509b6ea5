//===- Driver.cpp - The fake device's memory, modules and launches --------------------===//
#include "Fake.h"
#include "State.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>

using namespace ds::rt::fake;

struct CUmod_st {
  bool isLibrary = false;                              ///< machine code: the runtime's own kernels
  std::shared_ptr<int> code = std::make_shared<int>(); ///< what launches and graphs hold
  std::map<std::string, CUfunc_st *> functions;
};
struct CUfunc_st {
  Kernel kernel;
  std::shared_ptr<int> code = {}; ///< of its module
};

namespace ds::rt::fake {

State &state() {
  static State &instance = *new State; // until the process has ended
  return instance;
}

std::unique_lock<std::recursive_mutex> lockDevice() {
  static std::recursive_mutex mutex;
  return std::unique_lock(mutex);
}

/// Leaves the calls behind for a test that is not this process.
static const struct CallsFile {
  ~CallsFile() {
    const char *file = std::getenv("DS_FAKE_CALLS"), *rank = std::getenv("DS_RANK");
    if (file && *file)
      std::ofstream(std::string(file) + "." + (rank ? rank : "0")) << state().calls;
  }
} callsFile;

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

namespace {

uint64_t totalMemory() { return setting("DS_FAKE_MEMORY", uint64_t(8) << 30); }

/// What other processes hold.
uint64_t heldByOthers() {
  unsigned pid = 0;
  unsigned long long bytes = 0;
  const char *holder = std::getenv("DS_FAKE_HOLDER");
  return holder && std::sscanf(holder, "%u %llu", &pid, &bytes) == 2 ? bytes : 0;
}

/// Whether this run of a kernel is the one that DS_FAKE_FAULT asks for.
bool faults(const std::string &name) {
  const uint64_t run = ++state().runs[name];
  const char *wish = std::getenv("DS_FAKE_FAULT");
  std::istringstream words(wish ? wish : "");
  std::string which;
  uint64_t number = 0;
  return words >> which >> number && which == name && number == run;
}

/// Entries of PTX text with the words of their parameters: one each, but for arrays of bytes.
void parsePtx(const std::string &text, CUmodule module) {
  for (size_t at = 0; (at = text.find(".entry", at)) != std::string::npos;) {
    at += 6;
    const size_t begin = text.find_first_not_of(" \t\n", at), open = text.find('(', begin);
    const size_t close = text.find(')', open);
    std::string name = text.substr(begin, open - begin);
    name.erase(name.find_last_not_of(" \t\n") + 1);
    std::vector<size_t> arguments;
    for (size_t p = open; (p = text.find(".param", p)) < close; p += 6) {
      const size_t end = std::min(text.find(',', p), close), array = text.find('[', p);
      arguments.push_back(array < end ? std::stoul(text.substr(array + 1)) / sizeof(uint64_t) : 1);
    }
    module->functions[name] = new CUfunc_st{{name, arguments, {}, {}}};
  }
}

} // namespace
} // namespace ds::rt::fake

//===----------------------------------------------------------------------===//
// Device and context
//===----------------------------------------------------------------------===//

CUresult cuInit(unsigned) { return setting("DS_FAKE_DEVICES", 1) == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) {
  *version = static_cast<int>(setting("DS_FAKE_DRIVER", 13000));
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **text) {
  static std::string name;
  switch (error) {
  case CUDA_ERROR_NO_DEVICE:
    *text = "CUDA_ERROR_NO_DEVICE";
    return CUDA_SUCCESS;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return CUDA_SUCCESS;
  default:
    name = "CUDA_ERROR_" + std::to_string(error);
    *text = name.c_str();
    return CUDA_SUCCESS;
  }
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
          : error == CUDA_ERROR_NO_DEVICE     ? "no CUDA-capable device is detected"
                                              : "an error of the fake driver";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
  *count = static_cast<int>(setting("DS_FAKE_DEVICES", 1));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice) {
  const int arch = static_cast<int>(setting("DS_FAKE_ARCH", 90));
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? arch / 10
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? arch % 10
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 4
                                                                   : 227 * 1024;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device) {
  std::snprintf(text, static_cast<size_t>(bytes), "0000:0%d:00.0", device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&state());
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  const auto lock = lockDevice();
  *total = totalMemory();
  const uint64_t used = state().used + heldByOthers();
  *free = used < *total ? *total - used : 0;
  return state().sticky;
}
CUresult cuMemAlloc(CUdeviceptr *memory, size_t bytes) {
  call("cuMemAlloc " + std::to_string(bytes));
  if (state().used + heldByOthers() + bytes > totalMemory())
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, 0xff, bytes); // nobody may rely on fresh memory
  *memory = reinterpret_cast<CUdeviceptr>(block);
  state().allocations[*memory] = bytes;
  state().used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr memory) {
  state().used -= state().allocations[memory];
  state().allocations.erase(memory);
  std::free(reinterpret_cast<void *>(memory));
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  call("cuMemHostAlloc " + std::to_string(bytes));
  // As a driver's own: little memory shares a page with what else is there.
  const size_t offset = bytes < 65536 ? 512 : 0;
  auto *block = static_cast<std::byte *>(std::aligned_alloc(4096, (bytes + offset + 4095) / 4096 * 4096));
  *memory = block + offset;
  return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFreeHost(void *memory) {
  std::free(reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(memory) / 4096 * 4096));
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned) {
  call("cuMemHostRegister " + std::to_string(bytes));
  const bool whole = reinterpret_cast<uintptr_t>(memory) % 4096 == 0 && bytes % 4096 == 0;
  return whole && !std::getenv("DS_FAKE_UNLOCKABLE") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemHostUnregister(void *) {
  call("cuMemHostUnregister");
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *memory, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  call("cuMemcpyAsync " + std::to_string(bytes));
  return enqueue(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *spec, CUstream stream) {
  call("cuMemcpy2DAsync");
  return enqueue(stream, [s = *spec] {
    for (size_t row = 0; row < s.Height; ++row)
      std::memcpy(reinterpret_cast<char *>(s.dstDevice) + row * s.dstPitch,
                  reinterpret_cast<const char *>(s.srcDevice) + row * s.srcPitch, s.WidthInBytes);
    return CUDA_SUCCESS;
  });
}

template <class T>
static CUresult fillLater(CUdeviceptr at, size_t pitch, T value, size_t count, CUstream stream) {
  call("cuMemset " + std::to_string(sizeof(T)));
  return enqueue(stream, [=] {
    for (size_t i = 0; i < count; ++i)
      std::memcpy(reinterpret_cast<char *>(at) + i * pitch, &value, sizeof value);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream) {
  return fillLater(at, 1, value, count, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream) {
  return fillLater(at, 2, value, count, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream) {
  return fillLater(at, 4, value, count, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned value, size_t, size_t height,
                            CUstream stream) {
  return fillLater(at, pitch, value, height, stream);
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, CUjit_option *,
                            void **values) {
  call("cuModuleLoadDataEx");
  constexpr const char *kFatbin = "\x50\xed\x55\xba"; // texts may be shorter
  if (std::strncmp(static_cast<const char *>(image), kFatbin, 4) == 0) {
    *module = new CUmod_st;
    (*module)->isLibrary = true;
    return CUDA_SUCCESS;
  }
  const std::string text(static_cast<const char *>(image));
  const size_t target = text.find(".target sm_");
  if (target == std::string::npos) {
    if (options > 0)
      std::strcpy(static_cast<char *>(values[0]), "no .target");
    return CUDA_ERROR_INVALID_PTX;
  }
  if (std::strtoull(text.c_str() + target + 11, nullptr, 10) > setting("DS_FAKE_ARCH", 90))
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  *module = new CUmod_st;
  parsePtx(text, *module);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  for (auto &[name, function] : module->functions)
    function->code.reset();
  if (module->code.use_count() > 1) {
    std::fprintf(stderr, "fake driver: cuModuleUnload while graphs or streams hold its kernels\n");
    std::abort();
  }
  for (auto &[name, function] : module->functions)
    delete function;
  delete module;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (module->isLibrary && !module->functions.contains(name))
    if (const auto entry = findLibraryEntry(name))
      module->functions[name] = new CUfunc_st{{name, {}, {}, entry}};
  const auto found = module->functions.find(name);
  if (found == module->functions.end())
    return CUDA_ERROR_NOT_FOUND;
  *function = found->second;
  found->second->code = module->code;
  if (module->isLibrary)
    return CUDA_SUCCESS;
  Kernel &kernel = (*function)->kernel;
  kernel.body = findBody(name);
  kernel.ptx = findPtxEntry(name);
  if (kernel.ptx &&
      kernel.ptx->numWords != std::accumulate(kernel.arguments.begin(), kernel.arguments.end(), size_t(0)))
    return CUDA_ERROR_INVALID_IMAGE; // another program's
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int threads, size_t) {
  *blocks = 2048 / threads;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **values, void **) {
  const Kernel &kernel = function->kernel;
  call("cuLaunchKernel " + kernel.name + " grid " + std::to_string(gridX) + " block " +
       std::to_string(blockX));
  if (gridX * gridY * gridZ == 0 || blockX * blockY * blockZ > 1024 || sharedBytes > 227 * 1024)
    return CUDA_ERROR_INVALID_VALUE;
  if (const char *name = std::getenv("DS_FAKE_UNRECORDABLE");
      name && kernel.name == name && recordsInto(stream))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (kernel.library) {
    const auto *bytes = static_cast<const unsigned char *>(values[0]);
    return enqueue(stream, [=, &kernel, code = function->code,
                            argument = std::vector(bytes, bytes + kernel.library->argumentBytes)] {
      return kernel.library->run(argument, gridX, blockX, sharedBytes) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_LAUNCH_TIMEOUT;
    });
  }
  if (!kernel.body && !kernel.ptx)
    return CUDA_ERROR_INVALID_HANDLE;
  std::vector<uint64_t> arguments;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const auto *words = static_cast<const uint64_t *>(values[i]);
    arguments.insert(arguments.end(), words, words + kernel.arguments[i]);
  }
  return enqueue(stream, [=, &kernel, code = function->code] {
    if (faults(kernel.name))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (kernel.ptx)
      return kernel.ptx->run(arguments, gridX, blockX);
    kernel.body(arguments);
    return CUDA_SUCCESS;
  });
}
