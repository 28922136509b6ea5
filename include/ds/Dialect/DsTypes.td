//===- DsTypes.td - Buffers, and tensors that are kept elsewhere ----*- tablegen -*-===//
//
// Included by DsDialect.td alone, behind the spaces that types name.
//
//===-----------------------------------------------------------------------------===//
#ifndef DS_TYPES
#define DS_TYPES

def Ds_SpaceParam : EnumParameter<Ds_Space>;

def Ds_BufferType : TypeDef<Ds_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Strided window of memory in one space";
  let description = [{
    `!ds.buffer<tensor<4x8xf32>, [8, 1], device>`: element (i, j) lies `8 * i + j` elements after the first.
    Strides count elements and are not negative; a stride of 0 repeats.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor, ArrayRefParameter<"int64_t">:$strides,
                        Ds_SpaceParam:$space);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Row-major buffer of `tensor` in `space`.
    static BufferType getContiguous(RankedTensorType tensor, Space space = Space::Device);
    /// True when elements lie row-major without gaps.
    bool isContiguous() const;
    /// Bytes of the elements (not of the window's span).
    int64_t getSizeInBytes() const;
  }];
}

def Ds_StoredType : TypeDef<Ds_Dialect, "Stored"> {
  let mnemonic = "stored";
  let summary = "A tensor that is kept in another space than the device's";
  let description = [{
    `!ds.stored<tensor<4x8xf32>, host>`: the tensor, in the host's memory until `ds.load` brings it back.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor, Ds_SpaceParam:$space);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // DS_TYPES
