// RUN: ds-opt %s --ds-join-loss --split-input-file | FileCheck %s

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// What reaches the loss is known: one op does both where the gradient stood. What reads the loss reads that.
// CHECK-LABEL: @training
func.func @training(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>, %t: tensor<4xi64>) -> (tensor<f32>, tensor<4x6xbf16>) {
  // CHECK-NEXT: %[[G:.*]] = ds.constant
  // CHECK-NEXT: %[[H:.*]] = ds.matmul
  // CHECK-NEXT: %[[LOSS:.*]], %{{.*}}, %[[D:.*]] = ds.cross_entropy_with_grad %[[H]], %arg2, %[[G]] ignore_index -100 {ds.work = #ds.work<backward>} : (tensor<4x6xbf16>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x6xbf16>)
  // CHECK-NEXT: return %[[LOSS]], %[[D]]
  %g = ds.constant dense<5.0e-01> : tensor<f32>
  %h = ds.matmul %x, %w transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 {ds.work = #ds.work<forward>} : (tensor<4x6xbf16>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %g ignore_index -100 {ds.work = #ds.work<backward>} : (tensor<4x6xbf16>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xbf16>
  return %loss, %d : tensor<f32>, tensor<4x6xbf16>
}

// A part of a larger batch, with a cap, and another index that is ignored; the gradient comes between.
// CHECK-LABEL: @part
func.func @part(%h: tensor<4x6xf32>, %t: tensor<4xi64>, %n: tensor<f32>, %scale: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x6xf32>) {
  // CHECK-NEXT: %[[G:.*]] = ds.mul %arg3, %arg3
  // CHECK-NEXT: %[[LOSS:.*]], %[[COUNT:.*]], %[[D:.*]] = ds.cross_entropy_with_grad %arg0, %arg1, %[[G]] over(%arg2) ignore_index 0 cap 3.000000e+01 : (tensor<4x6xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x6xf32>)
  // CHECK-NEXT: return %[[LOSS]], %[[COUNT]], %[[D]]
  %loss, %lse, %count = ds.cross_entropy %h, %t over(%n) ignore_index 0 cap 30.0 : (tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %g = ds.mul %scale, %scale : tensor<f32>
  %d = ds.cross_entropy_grad %h, %t, %lse, %n, %g ignore_index 0 cap 30.0 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %loss, %count, %d : tensor<f32>, tensor<f32>, tensor<4x6xf32>
}

// Backward has its own views of the logits and of the targets.
// CHECK-LABEL: @views
// CHECK-NEXT: %[[X:.*]] = ds.reshape %arg0
// CHECK-NEXT: %[[S:.*]] = ds.slice %arg1
// CHECK-NEXT: %[[Y:.*]] = ds.reshape %[[S]]
// CHECK-NEXT: ds.cross_entropy_with_grad %[[X]], %[[Y]], %arg2
// CHECK-NEXT: return
func.func @views(%h: tensor<2x2x6xf32>, %t: tensor<2x3xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<4x6xf32>) {
  %x = ds.reshape %h : tensor<2x2x6xf32> -> tensor<4x6xf32>
  %s = ds.slice %t offsets [0, 1] strides [1, 1] : tensor<2x3xi64> -> tensor<2x2xi64>
  %y = ds.reshape %s : tensor<2x2xi64> -> tensor<4xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %y ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %x2 = ds.reshape %h : tensor<2x2x6xf32> -> tensor<4x6xf32>
  %s2 = ds.slice %t offsets [0, 1] strides [1, 1] : tensor<2x3xi64> -> tensor<2x2xi64>
  %y2 = ds.reshape %s2 : tensor<2x2xi64> -> tensor<4xi64>
  %d = ds.cross_entropy_grad %x2, %y2, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %loss, %d : tensor<f32>, tensor<4x6xf32>
}

// Other targets are other losses.
// CHECK-LABEL: @other_views
// CHECK: ds.cross_entropy_grad
func.func @other_views(%x: tensor<4x6xf32>, %t: tensor<2x3xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<4x6xf32>) {
  %s = ds.slice %t offsets [0, 0] strides [1, 1] : tensor<2x3xi64> -> tensor<2x2xi64>
  %y = ds.reshape %s : tensor<2x2xi64> -> tensor<4xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %y ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %s2 = ds.slice %t offsets [0, 1] strides [1, 1] : tensor<2x3xi64> -> tensor<2x2xi64>
  %y2 = ds.reshape %s2 : tensor<2x2xi64> -> tensor<4xi64>
  %d = ds.cross_entropy_grad %x, %y2, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %loss, %d : tensor<f32>, tensor<4x6xf32>
}

// What is computed of the loss follows it, as far as all else that it reads is there: a loss takes no memory during backward.
// CHECK-LABEL: @numbers
// CHECK-NEXT: %[[LOSS:.*]], %{{.*}}, %[[D:.*]] = ds.cross_entropy_with_grad
// CHECK-NEXT: %[[HALF:.*]] = ds.mul %[[LOSS]], %arg2
// CHECK-NEXT: %[[SUM:.*]] = ds.add %[[HALF]], %arg2
// CHECK-NEXT: %[[M:.*]] = ds.matmul %[[D]]
// CHECK-NEXT: %[[N:.*]] = ds.reduce
// CHECK-NEXT: %[[LATE:.*]] = ds.mul %[[SUM]], %[[N]]
// CHECK-NEXT: return %[[SUM]], %[[LATE]], %[[M]]
func.func @numbers(%h: tensor<4x6xf32>, %t: tensor<4xi64>, %g: tensor<f32>, %w: tensor<6x8xf32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  %m = ds.matmul %d, %w : tensor<4x6xf32>, tensor<6x8xf32> -> tensor<4x8xf32>
  %n = ds.reduce sum %m dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %half = ds.mul %loss, %g : tensor<f32>
  %sum = ds.add %half, %g : tensor<f32>
  %late = ds.mul %sum, %n : tensor<f32>
  return %sum, %late, %m : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// CHECK-LABEL: @evaluation
// CHECK-NEXT: ds.cross_entropy %
func.func @evaluation(%h: tensor<4x6xf32>, %t: tensor<4xi64>) -> tensor<f32> {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// The gradient of a squared loss depends on the loss.
// CHECK-LABEL: @of_the_loss
// CHECK-NEXT: ds.cross_entropy %
// CHECK: ds.cross_entropy_grad
func.func @of_the_loss(%h: tensor<4x6xf32>, %t: tensor<4xi64>) -> tensor<4x6xf32> {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %g = ds.add %loss, %loss : tensor<f32>
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %d : tensor<4x6xf32>
}

// And that of half the square is the loss itself.
// CHECK-LABEL: @is_the_loss
// CHECK-NEXT: ds.cross_entropy %
// CHECK-NEXT: ds.cross_entropy_grad
func.func @is_the_loss(%h: tensor<4x6xf32>, %t: tensor<4xi64>) -> tensor<4x6xf32> {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %loss ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %d : tensor<4x6xf32>
}

// Regions stand in the order that they were given: one that reads the loss before the gradient, and what reads that, wait for
// both to be made. A region that does not read the loss stays where it is.
// CHECK-LABEL: @region_reads_the_loss
// CHECK-NEXT: %[[SCALE:.*]] = ds.fused(%arg2)
// CHECK: %[[LOSS:.*]], %[[COUNT:.*]], %[[D:.*]] = ds.cross_entropy_with_grad %arg0, %arg1, %[[SCALE]]
// CHECK-NEXT: %[[MEAN:.*]] = ds.fused(%[[LOSS]], %[[COUNT]])
// CHECK: %[[SQUARE:.*]] = ds.fused(%[[MEAN]])
// CHECK: return %[[SQUARE]], %[[D]]
func.func @region_reads_the_loss(%h: tensor<4x6xf32>, %t: tensor<4xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<4x6xf32>) {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %mean = ds.fused(%loss, %count) : (tensor<f32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %q = ds.div %a, %b : tensor<f32>
    ds.yield %q : tensor<f32>
  }
  %scale = ds.fused(%g) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %q = ds.neg %a : tensor<f32>
    ds.yield %q : tensor<f32>
  }
  %square = ds.fused(%mean) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %q = ds.mul %a, %a : tensor<f32>
    ds.yield %q : tensor<f32>
  }
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %scale ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %square, %d : tensor<f32>, tensor<4x6xf32>
}

// Here what reaches the gradient is what two regions make of the loss.
// CHECK-LABEL: @region_of_the_loss
// CHECK-NEXT: ds.cross_entropy %
// CHECK: ds.fused
// CHECK: ds.fused
// CHECK: ds.cross_entropy_grad
func.func @region_of_the_loss(%h: tensor<4x6xf32>, %t: tensor<4xi64>) -> tensor<4x6xf32> {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %a = ds.fused(%loss) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%b: tensor<f32>):
    %q = ds.exp %b : tensor<f32>
    ds.yield %q : tensor<f32>
  }
  %g = ds.fused(%a) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%b: tensor<f32>):
    %q = ds.neg %b : tensor<f32>
    ds.yield %q : tensor<f32>
  }
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %d : tensor<4x6xf32>
}

// Something else reads the row statistics.
// CHECK-LABEL: @row_statistics
// CHECK-NEXT: ds.cross_entropy %
// CHECK-NEXT: ds.cross_entropy_grad
func.func @row_statistics(%h: tensor<4x6xf32>, %t: tensor<4xi64>, %g: tensor<f32>) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %d, %lse : tensor<4x6xf32>, tensor<4xf32>
}

// A gradient that is divided by something else, and one of logits that backward makes again.
// CHECK-LABEL: @others
// CHECK-NEXT: ds.cross_entropy %
// CHECK-NEXT: ds.cross_entropy_grad
// CHECK-NEXT: ds.cross_entropy %
// CHECK-NEXT: ds.cross_entropy_grad
func.func @others(%h: tensor<4x6xf32>, %again: tensor<4x6xf32>, %t: tensor<4xi64>, %g: tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d = ds.cross_entropy_grad %h, %t, %lse, %g, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  %loss2, %lse2, %count2 = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d2 = ds.cross_entropy_grad %again, %t, %lse2, %count2, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %d, %d2 : tensor<4x6xf32>, tensor<4x6xf32>
}
}

// -----

// Other targets are as before.
// CHECK-LABEL: @on_the_cpu
// CHECK-NEXT: ds.cross_entropy %
// CHECK-NEXT: ds.cross_entropy_grad
func.func @on_the_cpu(%h: tensor<4x6xf32>, %t: tensor<4xi64>, %g: tensor<f32>) -> tensor<4x6xf32> {
  %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %d = ds.cross_entropy_grad %h, %t, %lse, %count, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %d : tensor<4x6xf32>
}
