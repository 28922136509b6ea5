//===- CudnnEngines.cpp - The engines of cuDNN that commands run on ------------------===//
#include "CudnnEngines.h"

#include "BindAttention.h"
#include "CudnnConvolution.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace ds::rt::cuda {
namespace {

std::string keyOf(const ConvForm &f, DType dtype, bool tf32, uint64_t workspaceBytes) {
  std::string key = fmt::format("convolution {} {}{}{} batch {} channels {} to {} in {} groups",
                                static_cast<int>(f.kind), spell(dtype), tf32 ? " tf32" : "",
                                f.bias ? " bias" : "", f.batch, f.inputChannels, f.outputChannels, f.groups);
  for (int32_t d = 0; d < f.dims; ++d)
    key += fmt::format(" {}/{} stride {} padding {} dilation {}", f.input[d], f.window[d], f.stride[d],
                       f.padding[d], f.dilation[d]);
  return key + fmt::format(" workspace {}", workspaceBytes);
}

/// A convolution needs no cutting: its workspace is about as large as its operands.
Result<EngineWork> bindConvolution(CudnnSession &session, const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  std::vector<const Buffer *> buffers;
  std::vector<std::byte *> places;
  for (uint32_t i = 0; i < command.numOperands; ++i) {
    const uint32_t id = p.operands[command.firstOperand + i];
    buffers.push_back(&p.buffers[id]);
    places.push_back(binding.address(id));
    if (!isCudnnAligned(places.back()))
      return Error{ExitCode::Device, "an operand does not lie on 16 bytes", ""};
  }
  const DType dtype = buffers[0]->dtype;
  const ConvForm form =
      describeConv(static_cast<LibraryFn>(command.callee), buffers, p.params.data() + command.firstParam);
  if (command.workspace == UINT32_MAX)
    return Error{ExitCode::Device, "no workspace is planned for it", ""};
  const bool tf32 = allowsTf32(p);
  const uint64_t bytes = extentBytes(p.buffers[command.workspace]);
  const auto place = [&](int operand) { return places[static_cast<size_t>(operand)]; };
  void *workspace = binding.address(command.workspace);
  Result<std::shared_ptr<CudnnEngine>> engine =
      session.find({keyOf(form, dtype, tf32, bytes), bytes, unwantedForConvolutions(dtype, tf32),
                    [&] { return describeConvolution(session.library(), form, dtype); }});
  if (!engine)
    return engine.error();
  auto task = std::make_unique<CudnnTask>(session, *engine, "computing a convolution");
  if (Status status = task->add(place, workspace); !status)
    return status.error();
  std::vector<Choice> choices = {session.choiceFor(binding.driver, binding.stream, *task)};
  return EngineWork{std::move(task), std::move(choices)};
}

} // namespace

struct CudnnEngines::State {
  std::optional<Error> failure; ///< why there is no library
  std::unique_ptr<CudnnSession> session;
};

CudnnEngines::CudnnEngines(const Hardware &hardware) : state(std::make_unique<State>()) {
  Result<std::unique_ptr<CudnnSession>> opened = CudnnSession::open(hardware);
  if (opened)
    state->session = std::move(*opened);
  else
    state->failure = opened.error();
}
CudnnEngines::~CudnnEngines() = default;

std::string CudnnEngines::version() const { return state->session->library().version(); }

Result<EngineWork> CudnnEngines::bind(const Binding &binding, const Command &command,
                                      const LaunchBinder &launch) {
  if (state->failure)
    return *state->failure;
  return isConvolution(static_cast<LibraryFn>(command.callee))
             ? bindConvolution(*state->session, binding, command)
             : bindAttention(*state->session, binding, command, launch);
}

} // namespace ds::rt::cuda
