//===- Fake.h - A CUDA device made of host memory, for tests ---------------------===//
//
// libds-fake-cuda.so has the symbols of the driver, cuBLASLt, cuDNN, NCCL, NVML and CUPTI that the plugin
// uses. Device memory is host memory. Work runs late, when somebody synchronises, and in an unkind order:
// whenever several streams could go on, the one that was made last does. A missing event changes numbers.
//
// Kernels come from elsewhere: a test registers functions; DS_FAKE_PROGRAM names a program for CUDA and
// DS_FAKE_TWIN one for the CPU that has kernels of the same names; or DS_FAKE_KERNELS names the program's own
// PTX as ptx_to_cpp.py translates it, which is then run thread by thread. The environment says what device it
// is: DS_FAKE_DEVICES, DS_FAKE_ARCH (90), DS_FAKE_DRIVER (13000), DS_FAKE_MEMORY (bytes), DS_FAKE_HOLDER
// ("4711 1048576": pid and bytes), DS_FAKE_PROFILER (see Cupti.cpp), DS_FAKE_FAULT ("ds_count 3": the third
// run of this kernel faults), DS_FAKE_UNRECORDABLE (a kernel that cannot be recorded), DS_FAKE_UNLOCKABLE
// (pages of the host that are there already cannot be locked). With DS_FAKE_CALLS the calls of rank 2 are
// written to the file of that name with ".2" behind it when the process ends.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_FAKE_H
#define DS_UNITTESTS_RUNTIME_CUDA_FAKE_H

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ds::rt::fake {

/// What a kernel does with its arguments: the words of the launch's parameters, 8 bytes each.
using KernelBody = std::function<void(const std::vector<uint64_t> &arguments)>;

/// A kernel that comes with the runtime: the bytes of its one argument, and what runs it; false if its
/// threads wait for one another for ever.
struct LibraryEntry {
  size_t argumentBytes;
  std::function<bool(const std::vector<unsigned char> &argument, unsigned blocks, unsigned threads,
                     unsigned sharedBytes)>
      run;
};

/// An entry of translated PTX: runs a grid on the words of the launch's parameters.
struct PtxEntry {
  size_t numWords;
  std::function<CUresult(const std::vector<uint64_t> &arguments, unsigned blocks, unsigned threads)> run;
};

struct Kernel {
  std::string name;
  std::vector<size_t> arguments; ///< words of each
  KernelBody body;               ///< empty: unknown to the test
  std::optional<LibraryEntry> library = {};
  std::optional<PtxEntry> ptx = {}; ///< goes before `body`
};

std::optional<LibraryEntry> findLibraryEntry(const std::string &name);

/// The entry of this name in DS_FAKE_KERNELS; nothing if there is none.
std::optional<PtxEntry> findPtxEntry(const std::string &name);

/// The body of a kernel that a program or a test brings; empty if none does.
KernelBody findBody(const std::string &name);

/// One step of a stream: does something, records an event, or waits for one.
struct Work {
  enum class Kind { Do, Record, Wait } kind = Kind::Do;
  std::function<CUresult()> body;
  CUevent event = nullptr;
  uint64_t version = 0; ///< of the event
};

/// Puts work on a stream, or into the graph that the stream records.
CUresult enqueue(CUstream stream, std::function<CUresult()> body);

/// The graph that the stream records; null if it records none.
CUgraph recordsInto(CUstream stream);

/// Runs what can run: CUDA_SUCCESS when nothing is left, CUDA_ERROR_NOT_READY while work waits for other
/// ranks, else the error that ended everything.
CUresult poll();
/// Runs everything.
CUresult drain();

/// A number or text of the environment.
uint64_t setting(const char *name, uint64_t otherwise);

} // namespace ds::rt::fake

/// The calls so far, one per line; forgets them.
extern "C" const char *dsFakeCalls();
/// Registers a kernel of the form that the CPU has, with so many operands before its params.
extern "C" void dsFakeKernel(const char *name, void *function, uint32_t operands, int64_t extent);
/// Forgets errors and kernels.
extern "C" void dsFakeReset();

#endif // DS_UNITTESTS_RUNTIME_CUDA_FAKE_H
