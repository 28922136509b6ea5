// RUN: ds-opt %s --ds-freeze-parameters="patterns=enc.*,tied" | FileCheck %s
// RUN: ds-opt %s --ds-freeze-parameters="patterns=enc.*,tied" --ds-differentiate | FileCheck %s --check-prefix=GRADIENTS

// What a pattern matches, by its own name or an alias, is not trained; what none matches stays as it is.
// CHECK: ds.state @enc.w role (parameter) init
// CHECK: ds.state @table role (parameter) aliases ["tied"] init
// CHECK: ds.state @head.w role (parameter) trainable init
// CHECK: ds.state @fixed role (parameter) init
module {
  ds.state @enc.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @table role(parameter) trainable aliases ["tied"] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @head.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @fixed role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>

  // One product for the loss's gradient, that of @head.w: none goes through @head.w to @enc.w.
  // GRADIENTS-LABEL: @forward
  // GRADIENTS-SAME: tensor<4x4xf32> {ds.state = #ds.gradient<@head.w>})
  // GRADIENTS-COUNT-3: ds.matmul
  // GRADIENTS-NOT: ds.matmul
  func.func @forward(%x: tensor<8x4xf32> {ds.input = "x"}, %a: tensor<4x4xf32> {ds.state = @enc.w},
                     %b: tensor<4xf32> {ds.state = @table}, %w: tensor<4x4xf32> {ds.state = @head.w},
                     %f: tensor<4xf32> {ds.state = @fixed}) -> tensor<f32> {
    %h = ds.matmul %x, %a : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %y = ds.matmul %h, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %s = ds.mul %y, %y : tensor<8x4xf32>
    %l = ds.reduce sum %s dims [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
