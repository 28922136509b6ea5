// RUN: ds-opt %s --ds-verify-resident --split-input-file --verify-diagnostics

module attributes {ds.phase = #ds.phase<resident>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w})
      -> (tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<last>} {
    // expected-error@+1 {{'ds.matmul' op is marked ds.recomputed, but no fused region may hold it}}
    %p = ds.matmul %x, %w {ds.recomputed} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %p : tensor<4x4xf32>
  }
}

