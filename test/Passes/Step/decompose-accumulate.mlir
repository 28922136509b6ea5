// RUN: ds-opt %s --ds-decompose | FileCheck %s

// The sum with what is kept is formed inside of the product that makes the gradient, where nothing else reads that, and
// says the work that the op said.
// CHECK-LABEL: @inside_of_a_product
// CHECK: %[[SUM:.*]] = ds.matmul %{{.*}}, %{{.*}} into(%arg2) transpose_lhs {ds.work = #ds.work<backward>} : {{.*}} -> tensor<8x4xf32>
// CHECK-NOT: ds.add
// CHECK: return %[[SUM]]
func.func @inside_of_a_product(%x: tensor<2x8xf32>, %g: tensor<2x4xf32>, %kept: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %p = ds.matmul %x, %g transpose_lhs {ds.work = #ds.work<backward>} : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
  %s = ds.accumulate %p into %kept {ds.work = #ds.work<backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %s : tensor<8x4xf32>
}

// Kept in f32, a 16-bit product is made in f32; a chain starts from what is kept, and its rounding goes.
// CHECK-LABEL: @in_the_wider_type
// CHECK: %[[A:.*]] = ds.matmul %arg0, %arg1 into(%arg2) transpose_lhs : {{.*}} -> tensor<8x4xf32>
// CHECK: %[[B:.*]] = ds.matmul %arg0, %arg1 into(%[[A]]) transpose_lhs : {{.*}} -> tensor<8x4xf32>
// CHECK-NOT: ds.add
// CHECK: return %[[B]]
func.func @in_the_wider_type(%x: tensor<2x8xbf16>, %g: tensor<2x4xbf16>, %kept: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = ds.matmul %x, %g transpose_lhs : tensor<2x8xbf16>, tensor<2x4xbf16> -> tensor<8x4xf32>
  %b = ds.matmul %x, %g into(%a) transpose_lhs : tensor<2x8xbf16>, tensor<2x4xbf16> into tensor<8x4xf32> -> tensor<8x4xf32>
  %r = ds.convert %b : tensor<8x4xf32> -> tensor<8x4xbf16>
  %s = ds.accumulate %r into %kept : (tensor<8x4xbf16>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %s : tensor<8x4xf32>
}

// Nothing kept: the gradient in the type that it is kept in.
// CHECK-LABEL: @anew
// CHECK: %[[P:.*]] = ds.matmul {{.*}} : tensor<2x8xbf16>, tensor<2x4xbf16> -> tensor<8x4xf32>
// CHECK: return %[[P]]
func.func @anew(%x: tensor<2x8xbf16>, %g: tensor<2x4xbf16>) -> tensor<8x4xf32> {
  %p = ds.matmul %x, %g transpose_lhs : tensor<2x8xbf16>, tensor<2x4xbf16> -> tensor<8x4xbf16>
  %s = ds.accumulate %p : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  return %s : tensor<8x4xf32>
}

// The sum is formed in the wider type, and rounded to what is kept.
// CHECK-LABEL: @kept_narrow
// CHECK: %[[K:.*]] = ds.convert %arg1 {{.*}} : tensor<8xbf16> -> tensor<8xf32>
// CHECK: %[[S:.*]] = ds.add %[[K]], %arg0 {{.*}} : tensor<8xf32>
// CHECK: %[[R:.*]] = ds.convert %[[S]] {ds.layer = #ds.layer<"h", 0>, ds.work = #ds.work<backward>} : tensor<8xf32> -> tensor<8xbf16>
// CHECK: return %[[R]]
func.func @kept_narrow(%g: tensor<8xf32>, %kept: tensor<8xbf16>) -> tensor<8xbf16> {
  %s = ds.accumulate %g into %kept {ds.layer = #ds.layer<"h", 0>, ds.work = #ds.work<backward>} : (tensor<8xf32>, tensor<8xbf16>) -> tensor<8xbf16>
  return %s : tensor<8xbf16>
}

// A generator moves on by its counter alone; of one rank, the mean over ranks is the value.
// CHECK-LABEL: @alone
// CHECK: %[[STEP:.*]] = ds.iota dim 0 start 0 step 3 : tensor<2xi64>
// CHECK: %[[NEXT:.*]] = ds.add %arg0, %[[STEP]]
// CHECK: return %[[NEXT]], %arg1
func.func @alone(%rng: tensor<2xi64>, %loss: tensor<f32>) -> (tensor<2xi64>, tensor<f32>) {
  %n = ds.advance %rng by 3 : tensor<2xi64>
  %m = ds.rank_mean %loss : tensor<f32>
  return %n, %m : tensor<2xi64>, tensor<f32>
}
