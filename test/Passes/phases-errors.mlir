// What a module says of its phase is held to what stands in it.
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-scheduled
// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-insert-events

module attributes {ds.phase = #ds.phase<scheduled>} {
  // expected-error@+1 {{'func.func' op on tensors belongs to phase model to resident, but the module says that it is in phase scheduled}}
  func.func @last(%x: tensor<4xf32> {ds.input = "x"}) {
    return
  }
}

// -----

module attributes {ds.phase = #ds.phase<scheduled>} {
  func.func @last(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) {
    // expected-error@+1 {{'ds.constant' op belongs to phase model to resident, but the module says that it is in phase scheduled}}
    %c = ds.constant dense<0.0> : tensor<f32>
    return
  }
}
