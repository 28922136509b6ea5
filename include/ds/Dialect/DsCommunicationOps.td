//===- DsCommunicationOps.td - Collectives and events of phase scheduled -*- tablegen -*-===//
#ifndef DS_COMMUNICATION_OPS
#define DS_COMMUNICATION_OPS

include "ds/Dialect/DsBase.td"

def Ds_CommunicateOp : Ds_CommandOp<"communicate", ["getLabel", "getTraffic"],
                                    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, AttrSizedOperandSegments]> {
  let summary = "Runs a collective on buffers";
  let description = [{
    What the tensor op of the same `kind` says, on buffers. `number` is its place in the one order in which every
    rank issues the collectives of a function. The command is handed to its stream where it stands; when it has run,
    an event says. An all-gather's input may be this rank's window of its output.

    Constraints:
    - (C1) there is one input and one output, both contiguous and of one element type; a receive has no input, a
      send no output.
    - (C2) with n ranks along `axes`, an all-gather's output and a reduce-scatter's input have n times the elements
      of the other buffer; those of the other kinds are equal.
    - (C3) a reduction is given exactly for a reduce-scatter and an all-reduce.
    - (C4) the module has a mesh with these axes.
    - (C5) `peer`, the rank that a broadcast, a send or a receive names, is below the number of ranks.

    Example: `ds.communicate all_gather ins(%a) outs(%b) along dp carries parameter on gather : (!ds.buffer<tensor<512xf32>, [1], device>) -> !ds.buffer<tensor<2048xf32>, [1], device>`
  }];
  let arguments = (ins Ds_CollectiveKindAttr:$kind, Variadic<Ds_BufferType>:$inputs, Variadic<Ds_BufferType>:$outputs,
                       OptionalAttr<Ds_ReduceKindAttr>:$reduction, Ds_AxesAttr:$axes,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$peer, OptionalAttr<I64Attr>:$number,
                       Optional<Ds_BufferType>:$workspace, Ds_StreamAttr:$stream,
                       DefaultValuedAttr<Ds_PayloadAttr, "::mlir::ds::Payload::Exchange">:$carries);
  let assemblyFormat = [{
    custom<Keyword>($kind) `ins` `(` $inputs `)` `outs` `(` $outputs `)` (`reduce` custom<Keyword>($reduction)^)?
    `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? (`number` $number^)? (`workspace` `(` $workspace^ `:` qualified(type($workspace)) `)`)?
    `on` custom<Keyword>($stream) attr-dict `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes that one rank sends, given the number of ranks of a group.
    int64_t getSentBytes(int64_t ranks);
  }];
}

def Ds_RecordOp : Ds_CommandOp<"record", ["getRecordedEvent"]> {
  let summary = "Records an event when a stream has come this far";
  let description = [{
    The event happens when everything that was handed to `stream` before has run. In a function each event is
    recorded once.

    Example: `ds.record 3 on compute`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$event, Ds_StreamAttr:$stream);
  let assemblyFormat = "$event `on` custom<Keyword>($stream) attr-dict";
}

def Ds_WaitOp : Ds_CommandOp<"wait", ["getAwaitedEvent"]> {
  let summary = "Holds a stream until an event";
  let description = [{
    What is handed to `stream` after this runs only when the event has happened. It must have been recorded before,
    in issue order, so that no stream can wait for itself.

    Example: `ds.wait 3 on gather`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$event, Ds_StreamAttr:$stream);
  let assemblyFormat = "$event `on` custom<Keyword>($stream) attr-dict";
}

#endif // DS_COMMUNICATION_OPS
