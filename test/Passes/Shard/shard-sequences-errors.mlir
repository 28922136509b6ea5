// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-shard-tensors

module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 4] zero sp
  func.func @evaluate(%x: tensor<1x30x4x16xf32> {ds.input = "x"}) -> tensor<1x30x4x16xf32> attributes {ds.segment = #ds.segment<forward>} {
    // expected-error@+1 {{sequence_parallel_size = 4 does not divide sequences of 30 tokens; 28 or 32 tokens divide}}
    %r, %l = ds.attention %x, %x, %x causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<1x30x4x16xf32>, tensor<1x30x4x16xf32>, tensor<1x30x4x16xf32>) -> (tensor<1x30x4x16xf32>, tensor<1x4x30xf32>)
    return %r : tensor<1x30x4x16xf32>
  }
}

// -----

module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 8] zero sp
  func.func @evaluate(%x: tensor<1x32x12x16xf32> {ds.input = "x"}) -> tensor<1x32x12x16xf32> attributes {ds.segment = #ds.segment<forward>} {
    // expected-error@+1 {{sequence_parallel_size = 8 does not divide the 12 heads of attention, and there is no ring over ranks yet; sizes that do: 2, 3, 4, 6}}
    %r, %l = ds.attention %x, %x, %x causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<1x32x12x16xf32>, tensor<1x32x12x16xf32>, tensor<1x32x12x16xf32>) -> (tensor<1x32x12x16xf32>, tensor<1x12x32xf32>)
    return %r : tensor<1x32x12x16xf32>
  }
}

// -----

// Three key heads are read by two queries each, and halves of those heads by none.
module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 4] zero sp
  func.func @evaluate(%x: tensor<1x32x6x16xf32> {ds.input = "x"}, %k: tensor<1x32x3x16xf32> {ds.input = "k"}) -> tensor<1x32x6x16xf32> attributes {ds.segment = #ds.segment<forward>} {
    // expected-error@+1 {{sequence_parallel_size = 4 does not divide the 6 heads of attention by its 3 key heads, and there is no ring over ranks yet; sizes that do: 2, 3}}
    %r, %l = ds.attention %x, %k, %k causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<1x32x6x16xf32>, tensor<1x32x3x16xf32>, tensor<1x32x3x16xf32>) -> (tensor<1x32x6x16xf32>, tensor<1x6x32xf32>)
    return %r : tensor<1x32x6x16xf32>
  }
}

// -----

module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 4] zero sp
  // expected-error@+1 {{sequence_parallel_size = 4 finds no sequence that it divides: no attention, and no activation [batch, sequence, width]}}
  func.func @evaluate(%x: tensor<32x16xf32> {ds.input = "x"}) -> tensor<32x16xf32> attributes {ds.segment = #ds.segment<forward>} {
    %r = ds.exp %x {ds.work = #ds.work<forward>} : tensor<32x16xf32>
    return %r : tensor<32x16xf32>
  }
}
