// RUN: ds-opt %s --ds-order-issue | FileCheck %s

ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @u role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @big role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
ds.state @s role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

// Each op needs the one before.
// CHECK-LABEL: @keeps_a_chain
func.func @keeps_a_chain(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK: %[[A:.*]] = ds.matmul %arg0, %arg0
  // CHECK-NEXT: %[[B:.*]] = ds.matmul %[[A]], %arg0
  // CHECK-NEXT: %[[C:.*]] = ds.matmul %[[B]], %arg0
  // CHECK-NEXT: return %[[C]]
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %a, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.matmul %b, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// E2: all orders need the same, so the given one stays, though %b would do as well before %a.
// CHECK-LABEL: @keeps_an_order_that_is_as_good
func.func @keeps_an_order_that_is_as_good(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK: %[[A:.*]] = ds.matmul %arg0, %arg0 : tensor
  // CHECK-NEXT: %[[B:.*]] = ds.matmul %arg0, %arg0 transpose_lhs
  // CHECK-NEXT: ds.matmul %[[A]], %[[B]]
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %x, %x transpose_lhs : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.matmul %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// E2: two 16 KiB values live at once in the given order; when each is reduced to 4 bytes before the next is made, one
// place of 16 KiB is enough.
// CHECK-LABEL: @reduces_each_value_before_the_next_is_made
func.func @reduces_each_value_before_the_next_is_made(%x: tensor<64x64xf32> {ds.input = "y"}) -> (tensor<f32> {ds.state = @s}) {
  // CHECK: %[[A:.*]] = ds.matmul
  // CHECK-NEXT: ds.fused(%[[A]]) : (tensor<64x64xf32>) -> tensor<f32>
  // CHECK: %[[B:.*]] = ds.matmul
  // CHECK-NEXT: ds.fused(%[[B]]) : (tensor<64x64xf32>) -> tensor<f32>
  %a = ds.matmul %x, %x : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %b = ds.matmul %x, %x transpose_lhs : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %p = ds.fused (%a) : (tensor<64x64xf32>) -> tensor<f32> {
  ^bb0(%v: tensor<64x64xf32>):
    %r = ds.reduce sum %v dims [0, 1] : tensor<64x64xf32> -> tensor<f32>
    ds.yield %r : tensor<f32>
  }
  %q = ds.fused (%b) : (tensor<64x64xf32>) -> tensor<f32> {
  ^bb0(%v: tensor<64x64xf32>):
    %r = ds.reduce sum %v dims [0, 1] : tensor<64x64xf32> -> tensor<f32>
    ds.yield %r : tensor<f32>
  }
  %s = ds.fused (%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>, %w: tensor<f32>):
    %r = ds.add %v, %w : tensor<f32>
    ds.yield %r : tensor<f32>
  }
  return %s : tensor<f32>
}

// E1 and E3: the update of w stands before a reader of the old w in the text; issued after it, it needs no copy. The
// view of w is such a reader's way too.
// CHECK-LABEL: @updates_a_state_after_its_last_reader
func.func @updates_a_state_after_its_last_reader(%w: tensor<4x4xf32> {ds.state = @w}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}, tensor<4x4xf32> {ds.state = @u}) {
  // CHECK: %[[T:.*]] = ds.transpose %arg0
  // CHECK-NEXT: %[[M:.*]] = ds.matmul %arg1, %[[T]]
  // CHECK-NEXT: %[[N:.*]] = ds.fused(%arg0)
  // CHECK: return %[[N]], %[[M]]
  %n = ds.fused (%w) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%v: tensor<4x4xf32>):
    %r = ds.neg %v : tensor<4x4xf32>
    ds.yield %r : tensor<4x4xf32>
  }
  %t = ds.transpose %w perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %m = ds.matmul %x, %t : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %n, %m : tensor<4x4xf32>, tensor<4x4xf32>
}
