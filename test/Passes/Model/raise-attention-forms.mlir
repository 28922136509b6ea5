// RUN: ds-opt %s --split-input-file --canonicalize --cse --ds-raise-attention --canonicalize --cse | FileCheck %s

// Masks with windows, caps and slopes, in the spellings that models have.

// The last two positions: one condition of two.

// CHECK-LABEL: @sliding
// CHECK: ds.attention {{.*}} causal window 2 scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @sliding(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %behind = ds.sub %row, %column : tensor<4x4xi64>
  %two = ds.constant dense<2> : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %near = ds.compare lt %behind, %two : tensor<4x4xi64>
  %both = ds.and %past, %near : tensor<4x4xi1>
  %c = ds.broadcast %both dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %m = ds.select %c, %s, %fill : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// One position to either side, whatever hides the rest: |t - s| > 1.

// CHECK-LABEL: @both_sides
// CHECK: ds.attention {{.*}}, %{{[a-z0-9]+}} window 2 scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @both_sides(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %behind = ds.sub %row, %column : tensor<4x4xi64>
  %two = ds.constant dense<2> : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %near = ds.compare lt %behind, %two : tensor<4x4xi64>
  %distance = ds.abs %ahead : tensor<4x4xi64>
  %one = ds.constant dense<1> : tensor<4x4xi64>
  %far = ds.compare gt %distance, %one : tensor<4x4xi64>
  %c = ds.broadcast %far dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %m = ds.select %c, %fill, %s : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// The future as an addend, what lies further back as a select of its own.

// CHECK-LABEL: @apart
// CHECK: ds.attention {{.*}} causal window 2 scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @apart(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %behind = ds.sub %row, %column : tensor<4x4xi64>
  %two = ds.constant dense<2> : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %near = ds.compare lt %behind, %two : tensor<4x4xi64>
  %zero = ds.constant dense<0.0> : tensor<4x4xf32>
  %low = ds.constant dense<-3.4e38> : tensor<4x4xf32>
  %causal = ds.select %past, %zero, %low : tensor<4x4xf32>
  %causals = ds.broadcast %causal dims [2, 3] : tensor<4x4xf32> -> tensor<2x3x4x4xf32>
  %sum = ds.add %s, %causals : tensor<2x3x4x4xf32>
  %late = ds.compare lt %ahead, %two : tensor<4x4xi64>
  %band = ds.and %near, %late : tensor<4x4xi1>
  %c = ds.broadcast %band dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %m = ds.select %c, %sum, %fill : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// Two queries at the end of five keys: the first is at position 3.

// CHECK-LABEL: @past
// CHECK: ds.attention {{.*}} causal window 2 scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @past(%q: tensor<2x3x2x8xf32>, %k: tensor<2x3x5x8xf32>) -> tensor<2x3x2x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x2x8xf32>, tensor<2x3x5x8xf32> -> tensor<2x3x2x5xf32>
  %row = ds.iota dim 0 start 3 step 1 : tensor<2x5xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<2x5xi64>
  %ahead = ds.sub %column, %row : tensor<2x5xi64>
  %behind = ds.sub %row, %column : tensor<2x5xi64>
  %two = ds.constant dense<2> : tensor<2x5xi64>
  %past = ds.compare le %column, %row : tensor<2x5xi64>
  %near = ds.compare lt %behind, %two : tensor<2x5xi64>
  %both = ds.and %past, %near : tensor<2x5xi1>
  %c = ds.broadcast %both dims [2, 3] : tensor<2x5xi1> -> tensor<2x3x2x5xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x2x5xf32>
  %m = ds.select %c, %s, %fill : tensor<2x3x2x5xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x2x5xf32>
  %o = ds.matmul %p, %k : tensor<2x3x2x5xf32>, tensor<2x3x5x8xf32> -> tensor<2x3x2x8xf32>
  return %o : tensor<2x3x2x8xf32>
}

// -----

// Blocks of two positions are no window: it stays.

// CHECK-LABEL: @blocks
// CHECK-NOT: ds.attention
func.func @blocks(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %block = ds.constant dense<[[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]> : tensor<4x4xi64>
  %zero = ds.constant dense<0> : tensor<4x4xi64>
  %same = ds.compare ne %block, %zero : tensor<4x4xi64>
  %c = ds.broadcast %same dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %m = ds.select %c, %s, %fill : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// 5 tanh(s / 20) under a mask: a cap of 5 on scores of a scale of 5 / 20.

// CHECK-LABEL: @capped
// CHECK: ds.attention {{.*}} causal cap 5.000000e+00 scale 2.500000e-01 :
// CHECK-NOT: ds.tanh
func.func @capped(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %behind = ds.sub %row, %column : tensor<4x4xi64>
  %two = ds.constant dense<2> : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %near = ds.compare lt %behind, %two : tensor<4x4xi64>
  %twenty = ds.constant dense<20.0> : tensor<2x3x4x4xf32>
  %five = ds.constant dense<5.0> : tensor<2x3x4x4xf32>
  %divided = ds.div %s, %twenty : tensor<2x3x4x4xf32>
  %bent = ds.tanh %divided : tensor<2x3x4x4xf32>
  %capped = ds.mul %bent, %five : tensor<2x3x4x4xf32>
  %c = ds.broadcast %past dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %m = ds.select %c, %capped, %fill : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// A mask beside the cap is an addend behind it.

// CHECK-LABEL: @capped_and_masked
// CHECK: ds.attention {{.*}} mask({{.*}}) cap 5.000000e+00 scale 5.000000e+00 :
// CHECK-NOT: ds.tanh
func.func @capped_and_masked(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %mask: tensor<2x4xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %five = ds.constant dense<5.0> : tensor<2x3x4x4xf32>
  %bent = ds.tanh %s : tensor<2x3x4x4xf32>
  %capped = ds.mul %bent, %five : tensor<2x3x4x4xf32>
  %masks = ds.broadcast %mask dims [0, 3] : tensor<2x4xf32> -> tensor<2x3x4x4xf32>
  %m = ds.add %capped, %masks : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// A cap over a mask hides nothing: it stays.

// CHECK-LABEL: @capped_masks
// CHECK-NOT: ds.attention
func.func @capped_masks(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %behind = ds.sub %row, %column : tensor<4x4xi64>
  %two = ds.constant dense<2> : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %near = ds.compare lt %behind, %two : tensor<4x4xi64>
  %c = ds.broadcast %past dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %hidden = ds.select %c, %s, %fill : tensor<2x3x4x4xf32>
  %m = ds.tanh %hidden : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// As an import writes a stored condition: a band between counters of which one starts below 0, turned over.

// CHECK-LABEL: @imported
// CHECK: ds.attention {{.*}} causal window 2 scale 1.000000e+00 :
func.func @imported(%q: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %first = ds.iota dim 0 start -1 step 1 : tensor<4x4xi64>
  %last = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %ge = ds.compare ge %column, %first : tensor<4x4xi64>
  %le = ds.compare le %column, %last : tensor<4x4xi64>
  %inside = ds.and %ge, %le : tensor<4x4xi1>
  %hidden = ds.not %inside : tensor<4x4xi1>
  %c = ds.broadcast %hidden dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %m = ds.select %c, %fill, %s : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}

// -----

// ALiBi: a slope for each head times the distance, which the mask hides ahead.

// CHECK-LABEL: @slopes
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[SLOPES:.*]]: tensor<3xf32>
// CHECK: ds.attention %[[Q]], %[[Q]], %[[Q]] slopes(%[[SLOPES]]) causal scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @slopes(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x4x3x8xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %seen = ds.broadcast %past dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %distance = ds.convert %ahead : tensor<4x4xi64> -> tensor<4x4xf32>
  %distances = ds.broadcast %distance dims [1, 2] : tensor<4x4xf32> -> tensor<3x4x4xf32>
  %each = ds.broadcast %slopes dims [0] : tensor<3xf32> -> tensor<3x4x4xf32>
  %bias = ds.mul %each, %distances : tensor<3x4x4xf32>
  %biases = ds.broadcast %bias dims [1, 2, 3] : tensor<3x4x4xf32> -> tensor<2x3x4x4xf32>
  %sum = ds.add %s, %biases : tensor<2x3x4x4xf32>
  %m = ds.select %seen, %sum, %fill : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}

// -----

// Of the key's position alone, in a row of one, and scaled with the scores: 2 * 0.5 = 1. A mask stays beside it.

// CHECK-LABEL: @slopes_of_keys
// CHECK: ds.attention {{.*}} mask({{.*}}) slopes(%arg1) scale 5.000000e-01 :
// CHECK-NOT: ds.softmax
func.func @slopes_of_keys(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>, %mask: tensor<2x4xf32>) -> tensor<2x4x3x8xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %key = ds.iota dim 2 start 0 step 2 : tensor<3x1x4xf32>
  %each3 = ds.reshape %slopes : tensor<3xf32> -> tensor<3x1x1xf32>
  %each = ds.broadcast %each3 dims [0, 1, 2] : tensor<3x1x1xf32> -> tensor<3x1x4xf32>
  %bias = ds.mul %key, %each : tensor<3x1x4xf32>
  %flat = ds.reshape %bias : tensor<3x1x4xf32> -> tensor<1x3x1x4xf32>
  %biases = ds.broadcast %flat dims [0, 1, 2, 3] : tensor<1x3x1x4xf32> -> tensor<2x3x4x4xf32>
  %sum = ds.add %biases, %s : tensor<2x3x4x4xf32>
  %half = ds.constant dense<0.5> : tensor<2x3x4x4xf32>
  %scaled = ds.mul %sum, %half : tensor<2x3x4x4xf32>
  %masks = ds.broadcast %mask dims [0, 3] : tensor<2x4xf32> -> tensor<2x3x4x4xf32>
  %m = ds.add %scaled, %masks : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}

// -----

// -|t - s| is s - t for what a causal mask leaves.

// CHECK-LABEL: @slopes_of_distances
// CHECK: ds.attention {{.*}} slopes(%arg1) causal scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @slopes_of_distances(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x4x3x8xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %seen = ds.broadcast %past dims [2, 3] : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %distance = ds.abs %ahead : tensor<4x4xi64>
  %minus = ds.neg %distance : tensor<4x4xi64>
  %float = ds.convert %minus : tensor<4x4xi64> -> tensor<4x4xf32>
  %distances = ds.broadcast %float dims [2, 3] : tensor<4x4xf32> -> tensor<2x3x4x4xf32>
  %each = ds.broadcast %slopes dims [1] : tensor<3xf32> -> tensor<2x3x4x4xf32>
  %bias = ds.mul %distances, %each : tensor<2x3x4x4xf32>
  %sum = ds.add %s, %bias : tensor<2x3x4x4xf32>
  %m = ds.select %seen, %sum, %fill : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}

// -----

// Without the mask they rise and fall again: they stay an addend.

// CHECK-LABEL: @distances_without_a_mask
// CHECK: ds.attention {{.*}} mask({{.*}}) scale 1.000000e+00 :
// CHECK-NOT: slopes(
func.func @distances_without_a_mask(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x4x3x8xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %ahead = ds.sub %column, %row : tensor<4x4xi64>
  %distance = ds.abs %ahead : tensor<4x4xi64>
  %float = ds.convert %distance : tensor<4x4xi64> -> tensor<4x4xf32>
  %distances = ds.broadcast %float dims [2, 3] : tensor<4x4xf32> -> tensor<2x3x4x4xf32>
  %each = ds.broadcast %slopes dims [1] : tensor<3xf32> -> tensor<2x3x4x4xf32>
  %bias = ds.mul %distances, %each : tensor<2x3x4x4xf32>
  %m = ds.add %s, %bias : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}

// -----

// Heads that count as batch have a slope each, which one op cannot: it stays an addend.

// CHECK-LABEL: @slopes_as_batch
// CHECK: ds.attention {{.*}} mask({{.*}}) scale 1.000000e+00 :
func.func @slopes_as_batch(%q: tensor<2x3x4x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x3x4x8xf32> {
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %key = ds.iota dim 3 start 0 step 1 : tensor<2x3x4x4xf32>
  %each = ds.broadcast %slopes dims [1] : tensor<3xf32> -> tensor<2x3x4x4xf32>
  %bias = ds.mul %each, %key : tensor<2x3x4x4xf32>
  %m = ds.add %s, %bias : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %o : tensor<2x3x4x8xf32>
}
