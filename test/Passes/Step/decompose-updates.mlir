// RUN: ds-opt %s --ds-decompose | FileCheck %s --implicit-check-not=ds.update --implicit-check-not="= ds.sum_of_squares"
// RUN: ds-opt %s --ds-decompose=keep-updates | FileCheck %s --check-prefix=KEPT

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
ds.state @s role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

// The body takes the op's place, on its operands.
// CHECK-LABEL: @update
// CHECK-SAME: %[[W:.*]]: tensor<8xf32>, %[[G:.*]]: tensor<8xf32>, %[[RATE:.*]]: tensor<f64>
// CHECK-NEXT: %[[NARROW:.*]] = ds.convert %[[RATE]] : tensor<f64> -> tensor<f32>
// CHECK-NEXT: %[[RATES:.*]] = ds.broadcast %[[NARROW]] dims [] : tensor<f32> -> tensor<8xf32>
// CHECK-NEXT: %[[STEP:.*]] = ds.mul %[[G]], %[[RATES]]
// CHECK-NEXT: %[[NEW:.*]] = ds.sub %[[W]], %[[STEP]]
// CHECK-NEXT: return %[[NEW]], %[[STEP]]
// KEPT-LABEL: @update
// KEPT: ds.update @w
func.func @update(%w: tensor<8xf32>, %g: tensor<8xf32>, %rate: tensor<f64>) -> (tensor<8xf32>, tensor<8xf32>) {
  %new:2 = ds.update @w states(%w) gradient(%g) scalars(%rate) : (tensor<8xf32>, tensor<8xf32>, tensor<f64>) -> (tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%old: tensor<8xf32>, %gradient: tensor<8xf32>, %r: tensor<f64>):
    %narrow = ds.convert %r : tensor<f64> -> tensor<f32>
    %rates = ds.broadcast %narrow dims [] : tensor<f32> -> tensor<8xf32>
    %step = ds.mul %gradient, %rates : tensor<8xf32>
    %next = ds.sub %old, %step : tensor<8xf32>
    ds.yield %next, %step : tensor<8xf32>, tensor<8xf32>
  }
  return %new#0, %new#1 : tensor<8xf32>, tensor<8xf32>
}

// In a parameter of rank 0, scalars look like elements.
// CHECK-LABEL: @update_of_one_number
// CHECK-SAME: %[[W:.*]]: tensor<f32>, %[[G:.*]]: tensor<f32>, %[[RATE:.*]]: tensor<f32>
// CHECK-NEXT: %[[STEP:.*]] = ds.mul %[[G]], %[[RATE]]
// CHECK-NEXT: %[[NEW:.*]] = ds.sub %[[W]], %[[STEP]]
// CHECK-NEXT: return %[[NEW]]
func.func @update_of_one_number(%w: tensor<f32>, %g: tensor<f32>, %rate: tensor<f32>) -> tensor<f32> {
  %new = ds.update @s states(%w) gradient(%g) scalars(%rate) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%old: tensor<f32>, %gradient: tensor<f32>, %r: tensor<f32>):
    %step = ds.mul %gradient, %r : tensor<f32>
    %next = ds.sub %old, %step : tensor<f32>
    ds.yield %next : tensor<f32>
  }
  return %new : tensor<f32>
}

// 40000 = 2 * 16384 + 7232: blocks in f32, over blocks in f64. Each window is widened by itself.
// CHECK-LABEL: @sum_of_squares
// CHECK-SAME: %[[X:.*]]: tensor<200x200xbf16>
// CHECK-NEXT: %[[FLAT:.*]] = ds.reshape %[[X]] : tensor<200x200xbf16> -> tensor<40000xbf16>
// CHECK-NEXT: %[[MAIN:.*]] = ds.slice %[[FLAT]] offsets [0] strides [1] : tensor<40000xbf16> -> tensor<32768xbf16>
// CHECK-NEXT: %[[BLOCKS:.*]] = ds.reshape %[[MAIN]] : tensor<32768xbf16> -> tensor<2x16384xbf16>
// CHECK-NEXT: ds.convert %[[BLOCKS]] : tensor<2x16384xbf16> -> tensor<2x16384xf32>
// CHECK: %[[SUMS:.*]] = ds.reduce sum %{{.*}} dims [1] : tensor<2x16384xf32> -> tensor<2xf32>
// CHECK: ds.reduce sum %{{.*}} dims [0] : tensor<2xf64> -> tensor<f64>
// CHECK: %[[TAIL:.*]] = ds.slice %[[FLAT]] offsets [32768] strides [1] : tensor<40000xbf16> -> tensor<7232xbf16>
// CHECK: ds.convert %[[TAIL]] : tensor<7232xbf16> -> tensor<7232xf32>
// KEPT-LABEL: @sum_of_squares
// KEPT: ds.sum_of_squares
func.func @sum_of_squares(%x: tensor<200x200xbf16>) -> tensor<f64> {
  %s = ds.sum_of_squares %x : tensor<200x200xbf16> -> tensor<f64>
  return %s : tensor<f64>
}

// A library function takes many tensors at once, of whatever types it reads.
// CHECK-LABEL: @sum_of_many
// CHECK: %{{.*}} = ds.sum_of_squares %arg0, %arg1
// CHECK-NEXT: return
func.func @sum_of_many(%x: tensor<200x200xbf16>, %y: tensor<8xf32>) -> tensor<f64> {
  %s = ds.sum_of_squares %x, %y : tensor<200x200xbf16>, tensor<8xf32> -> tensor<f64>
  return %s : tensor<f64>
}

// It reads no f64, and nothing is left of a tensor without elements.
// CHECK-LABEL: @sum_of_doubles
// CHECK: %[[X:.*]] = ds.reduce sum %{{.*}} dims [0] : tensor<8xf64> -> tensor<f64>
// CHECK: %[[NARROW:.*]] = ds.reduce sum %{{.*}} dims [0] : tensor<3xf32> -> tensor<f32>
// CHECK: %[[Y:.*]] = ds.convert %[[NARROW]]
// CHECK: %[[SUM:.*]] = ds.add %[[X]], %[[Y]] : tensor<f64>
// CHECK: return %[[SUM]]
func.func @sum_of_doubles(%x: tensor<8xf64>, %none: tensor<4x0xf32>, %y: tensor<3xf32>) -> tensor<f64> {
  %s = ds.sum_of_squares %x, %none, %y : tensor<8xf64>, tensor<4x0xf32>, tensor<3xf32> -> tensor<f64>
  return %s : tensor<f64>
}

// CHECK-LABEL: @sum_of_nothing
// CHECK: %[[ZERO:.*]] = ds.constant dense<0.000000e+00> : tensor<f64>
// CHECK: return %[[ZERO]]
func.func @sum_of_nothing(%none: tensor<0xf32>) -> tensor<f64> {
  %s = ds.sum_of_squares %none : tensor<0xf32> -> tensor<f64>
  return %s : tensor<f64>
}

// KEPT-LABEL: @other_composites
// KEPT-NOT: ds.softmax
func.func @other_composites(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = ds.softmax %x dim 1 : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
