// RUN: ds-opt %s --ds-bufferize --split-input-file --verify-diagnostics

module attributes {ds.phase = #ds.phase<resident>} {
  func.func @not_decomposed(%x: tensor<4x8xf32> {ds.input = "x"}) {
    // expected-error@+1 {{'ds.softmax' op belongs to phase model to sharded, but the module says that it is in phase resident}}
    %s = ds.softmax %x dim 1 : tensor<4x8xf32>
    return
  }
}

// -----

func.func @not_fused(%x: tensor<4xf32> {ds.input = "x"}) {
  // expected-error@+2 {{'ds.exp' op expects to be fused or lowered before buffers are assigned}}
  // expected-note@+1 {{run ds-decompose and ds-fuse-regions first}}
  %e = ds.exp %x : tensor<4xf32>
  return
}

// -----

func.func @result_without_state(%x: tensor<4xf32> {ds.input = "x"}) -> tensor<4xf32> {
  // expected-error@+1 {{'func.return' op expects every result to be a state, but result 0 is none}}
  return %x : tensor<4xf32>
}
