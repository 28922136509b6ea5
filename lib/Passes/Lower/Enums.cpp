//===- Enums.cpp - Words of the dialect are words of the program ---------------------===//
//
// Lowering hands enumerators over by number. The dialect's are generated, the program's stand in a header
// that knows no MLIR: here they are held together, and one that is added to one side alone does not compile.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/Library.h"

using namespace mlir::ds;
namespace rt = ::ds::rt;

/// Whether two enumerators have one number.
template <class Ours, class Theirs>
static constexpr bool isSame(Ours ours, Theirs theirs) {
  return static_cast<unsigned>(ours) == static_cast<unsigned>(theirs);
}

static_assert(isSame(Space::Device, rt::Space::Device) && isSame(Space::Host, rt::Space::Host) &&
              isSame(Space::Nvme, rt::Space::Nvme) && getMaxEnumValForSpace() == 2);

static_assert(isSame(Role::Parameter, rt::Role::Parameter) && isSame(Role::Buffer, rt::Role::Buffer) &&
              isSame(Role::Gradient, rt::Role::Gradient) && isSame(Role::Moment, rt::Role::Moment) &&
              isSame(Role::Master, rt::Role::Master) && isSame(Role::Scalar, rt::Role::Scalar) &&
              getMaxEnumValForRole() == 5);

static_assert(isSame(InitKind::Zero, rt::Init::Kind::Zero) &&
              isSame(InitKind::Constant, rt::Init::Kind::Constant) &&
              isSame(InitKind::Normal, rt::Init::Kind::Normal) &&
              isSame(InitKind::Uniform, rt::Init::Kind::Uniform) &&
              isSame(InitKind::Required, rt::Init::Kind::Required) &&
              isSame(InitKind::Sinusoid, rt::Init::Kind::Sinusoid) && getMaxEnumValForInitKind() == 5);

// The program has a word for collectives that combine nothing.
static_assert(static_cast<unsigned>(ReduceKind::Sum) + 1 == static_cast<unsigned>(rt::Reduction::Sum) &&
              static_cast<unsigned>(ReduceKind::Max) + 1 == static_cast<unsigned>(rt::Reduction::Max) &&
              static_cast<unsigned>(ReduceKind::Min) + 1 == static_cast<unsigned>(rt::Reduction::Min) &&
              getMaxEnumValForReduceKind() == 2);

// Recomputing is work of ops, not of segments: the program has no word for it. Moves are in no program of a
// compiler yet. Transfers are numbered otherwise.
static_assert(isSame(Work::Forward, rt::Work::Forward) && isSame(Work::Backward, rt::Work::Backward) &&
              isSame(Work::InputGradient, rt::Work::InputGradient) &&
              isSame(Work::WeightGradient, rt::Work::WeightGradient) &&
              isSame(Work::Update, rt::Work::Update) && isSame(Work::Evaluation, rt::Work::Evaluation) &&
              getMaxEnumValForWork() == 7);

static_assert(isSame(Epilogue::None, rt::Activation::None) && isSame(Epilogue::Relu, rt::Activation::Relu) &&
              isSame(Epilogue::Gelu, rt::Activation::Gelu) &&
              isSame(Epilogue::GeluGradient, rt::Activation::GeluGradient) &&
              isSame(rt::kLastActivation, rt::Activation::GeluGradient) && getMaxEnumValForEpilogue() == 3);

static_assert(isSame(Gradients::None, rt::Gradients::None) && isSame(Gradients::Set, rt::Gradients::Set) &&
              isSame(Gradients::Add, rt::Gradients::Add) && getMaxEnumValForGradients() == 2);

static_assert(isSame(StreamKind::Compute, rt::StreamKind::Compute) &&
              isSame(StreamKind::Gather, rt::StreamKind::Gather) &&
              isSame(StreamKind::Reduce, rt::StreamKind::Reduce) &&
              isSame(StreamKind::ToHost, rt::StreamKind::ToHost) &&
              isSame(StreamKind::ToDevice, rt::StreamKind::ToDevice) &&
              isSame(StreamKind::Storage, rt::StreamKind::Storage) &&
              isSame(StreamKind::Host, rt::StreamKind::Host) &&
              isSame(StreamKind::Exchange, rt::StreamKind::Exchange) &&
              isSame(StreamKind::Transfer, rt::StreamKind::Transfer) && getMaxEnumValForStreamKind() == 8);
