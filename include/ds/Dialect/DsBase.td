//===- DsBase.td - What all ops of the dialect share ----------------*- tablegen -*-===//
#ifndef DS_BASE
#define DS_BASE

include "ds/Dialect/DsDialect.td"
include "ds/Dialect/DsInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

class Ds_Op<string mnemonic, list<Trait> traits = []> : Op<Ds_Dialect, mnemonic, traits>;

// The phases in which an op may stand, both included; see PhasedOpInterface.
class InPhases<string first, string last> : TraitList<[PhasedOpInterface,
    ParamNativeOpTrait<"InPhases", "::mlir::ds::Phase::" # first # ", ::mlir::ds::Phase::" # last>]>;
def OnTensors : InPhases<"Model", "Resident">;
def OnBuffers : InPhases<"Scheduled", "Planned">;
def Composite : InPhases<"Model", "Sharded">;  // until it is decomposed

// A command, which streams execute; see ScheduledOpInterface.
class Ds_CommandOp<string mnemonic, list<string> own, list<Trait> traits = []>
    : Ds_Op<mnemonic, !listconcat([OnBuffers, DeclareOpInterfaceMethods<ScheduledOpInterface, own>], traits)>;

// The op takes so long for one element that repeating it for several readers costs more than keeping its value.
def HeavyBody : NativeOpTrait<"HeavyBody">;

// A library function computes the op, and there is one for the host, whatever the device is.
def RunsOnHost : NativeOpTrait<"RunsOnHost">;

def Ds_Integer : AnyTypeOf<[I8, UI8, I32, I64], "8-, 32- or 64-bit integer">;
def Ds_Number : AnyTypeOf<[AnyFloat, Ds_Integer], "float or integer">;
def Ds_Element : AnyTypeOf<[AnyFloat, Ds_Integer, I1], "float, integer or truth value">;

// Ranked tensors; sizes are static everywhere but inside kernels that are shared by tensors of different size.
class Ds_TensorOf<Type element> : RankedTensorOf<[element]>;
def Ds_Tensor : Ds_TensorOf<Ds_Element>;
def Ds_FloatTensor : Ds_TensorOf<AnyFloat>;
def Ds_IntTensor : Ds_TensorOf<Ds_Integer>;
def Ds_ScalarF32 : TypeConstraint<And<[Ds_FloatTensor.predicate, HasAnyRankOfPred<[0]>]>, "rank-0 float tensor",
                                  "::mlir::RankedTensorType">;

#endif // DS_BASE
