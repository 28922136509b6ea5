// Where memory is short, as little as can be crosses; where it is free, what saves time is kept.
// RUN: ds-opt %s --ds-set-machine=memory=1 --ds-fuse-regions --ds-rematerialize-cheap=calls=false | FileCheck %s
// RUN: ds-opt %s --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=FREE
// Where least is asked for it is held whatever memory there is; no groups are named where calls stay.
// RUN: ds-opt %s --ds-fuse-regions --ds-rematerialize-cheap="calls=false memory=least" -o %t.least
// RUN: FileCheck %s --input-file %t.least
// RUN: ds-opt %s --ds-fuse-regions --ds-rematerialize-cheap="groups=none memory=least" | diff - %t.least
// RUN: ds-opt %s --ds-fuse-regions --ds-rematerialize-cheap="calls=false memory=1" | diff - %t.least
// RUN: not grep group_values %t.least
// The groups that are asked for are those of which calls may be recomputed, and are named.
// RUN: ds-opt %s --ds-fuse-regions --ds-rematerialize-cheap="groups=2 memory=least" | FileCheck %s --check-prefix=GROUPS
// GROUPS: group_values = 2
// RUN: not ds-opt %s --ds-rematerialize-cheap=memory=0 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: expects machine, least, or a number of at least 1, but got '0'
// RUN: ds-opt %s --ds-set-machine=memory=1 --ds-fuse-regions --ds-rematerialize-cheap="calls=false remarks" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
ds.state @g role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
ds.state @eval_loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

// Evaluation has no backward, and a product is not made twice, nor is a reduction.

// CHECK-LABEL: @evaluate
// CHECK-COUNT-1: ds.exp
// CHECK-NOT: ds.exp
func.func @evaluate(%x: tensor<8x8xf32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @eval_loss}) attributes {ds.segment = #ds.segment<evaluation>} {
  %e = ds.exp %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %n = ds.neg %e {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %loss = ds.reduce sum %n dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: @keeps_products
// CHECK-COUNT-1: ds.matmul
// CHECK-NOT: ds.matmul
// CHECK-COUNT-1: ds.reduce
// CHECK-NOT: ds.reduce
// CHECK: ds.add %{{.*}}, %{{.*}} : tensor<8x8xf32>
func.func @keeps_products(%x: tensor<8x8xf32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @loss}, tensor<8x8xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %p = ds.matmul %x, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %loss = ds.reduce sum %p dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<f32>
  %b = ds.broadcast %loss dims [] {ds.work = #ds.work<backward>} : tensor<f32> -> tensor<8x8xf32>
  %g = ds.add %p, %b {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  return %loss, %g : tensor<f32>, tensor<8x8xf32>
}

// A spelled-out activation: two of its values are read by backward, and only its input %h crosses: neither leaves forward's
// region any more. Each region that reads tanh has a copy of its own, which stands before it; so has the product.

// CHECK-LABEL: @activation
// CHECK: %[[H:.*]] = ds.matmul
// CHECK: %[[LOSS:.*]] = ds.fused(%[[H]]) {ds.work = #ds.work<forward>} : (tensor<8x8xf32>) -> tensor<f32> {
// CHECK: ds.reduce sum
// CHECK: %[[T:.*]] = ds.tanh %[[H]] {ds.work = #ds.work<recompute>}
// CHECK: %[[G2:.*]] = ds.fused(%[[T]]) {ds.work = #ds.work<backward>}
// CHECK: ds.mul
// CHECK: ds.add
// CHECK: %[[T2:.*]] = ds.tanh %[[H]] {ds.work = #ds.work<recompute>}
// CHECK: %[[A:.*]] = ds.mul %[[H]], %[[T2]] {ds.work = #ds.work<recompute>}
// CHECK: %[[P:.*]] = ds.matmul %[[G2]], %[[A]]
// CHECK: %[[T3:.*]] = ds.tanh %[[H]] {ds.work = #ds.work<recompute>}
// CHECK: ds.fused(%[[P]], %[[T3]])
// A product reads %a: to make it again would take a kernel. Of %t its readers have %h in their kernel anyway.
// FREE-LABEL: @activation
// FREE: %[[H:.*]] = ds.matmul
// FREE: %[[A:.*]]:2 = ds.fused(%[[H]]) {ds.work = #ds.work<forward>}
// FREE: %[[MUL:.*]] = ds.mul
// FREE: ds.yield %[[MUL]], %{{.*}} : tensor<8x8xf32>, tensor<f32>
// FREE: ds.tanh %[[H]] {ds.work = #ds.work<recompute>}
// FREE-NOT: ds.mul %[[H]]
// FREE: ds.matmul %{{.*}}, %[[A]]#0
// FREE: ds.tanh %[[H]] {ds.work = #ds.work<recompute>}

// REMARK: remark: is recomputed in backward: 256 bytes are not kept, for {{.*}} s a step
func.func @activation(%x: tensor<8x8xf32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @loss}, tensor<8x8xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %h = ds.matmul %x, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %t = ds.tanh %h {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %a = ds.mul %h, %t {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %loss = ds.reduce sum %a dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<f32>
  %ha = ds.mul %t, %t {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  %hb = ds.add %ha, %t {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  %p = ds.matmul %hb, %a {ds.work = #ds.work<backward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %g = ds.add %p, %t {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  return %loss, %g : tensor<f32>, tensor<8x8xf32>
}

// The sum of two products is one value where its parts are two: it crosses itself, nothing is repeated.

// CHECK-LABEL: @residual
// CHECK: ds.matmul
// CHECK: ds.matmul
// CHECK: %[[S:.*]]:2 = ds.fused(%
// CHECK: %[[SUM:.*]] = ds.add
// CHECK: ds.yield %[[SUM]],
// CHECK-NOT: ds.add
// CHECK: ds.fused(%[[S]]#0) {ds.work = #ds.work<backward>}
func.func @residual(%x: tensor<8x8xf32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @loss}, tensor<8x8xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  %p = ds.matmul %x, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %q = ds.matmul %p, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %s = ds.add %p, %q {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %loss = ds.reduce sum %s dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<f32>
  %g = ds.mul %s, %s {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  return %loss, %g : tensor<f32>, tensor<8x8xf32>
}

// A truth value is a byte where the number it came from is four: alone, it is what crosses.

// CHECK-LABEL: @truth
// CHECK: %[[R:.*]]:2 = ds.fused(%
// CHECK: %[[C:.*]] = ds.compare
// CHECK: ds.yield %[[C]], %{{.*}} : tensor<8x8xi1>, tensor<f32>
// CHECK-NOT: ds.compare
// CHECK: ds.fused(%[[R]]#0, %
func.func @truth(%x: tensor<8x8xf32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @loss}, tensor<8x8xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  %p = ds.matmul %x, %x {ds.work = #ds.work<forward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %zero = ds.constant dense<0.0> : tensor<8x8xf32>
  %c = ds.compare gt %p, %zero {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %r = ds.select %c, %p, %zero {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %loss = ds.reduce sum %r dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<f32>
  %g = ds.select %c, %x, %zero {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  return %loss, %g : tensor<f32>, tensor<8x8xf32>
}

// What states and inputs give by cheap ops alone never crosses.

// CHECK-LABEL: @from_state
// CHECK-SAME: %[[W:.*]]: tensor<8x8xf32> {ds.state = @w}
// CHECK: ds.reduce
// CHECK: ds.yield %{{.*}} : tensor<f32>
// CHECK: %[[AGAIN:.*]] = ds.exp %[[W]] {ds.work = #ds.work<recompute>}
// CHECK: ds.fused(%[[AGAIN]]) {ds.work = #ds.work<backward>}
func.func @from_state(%w: tensor<8x8xf32> {ds.state = @w}) -> (tensor<f32> {ds.state = @loss}, tensor<8x8xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  %e = ds.exp %w {ds.work = #ds.work<forward>} : tensor<8x8xf32>
  %loss = ds.reduce sum %e dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x8xf32> -> tensor<f32>
  %g = ds.mul %e, %e {ds.work = #ds.work<backward>} : tensor<8x8xf32>
  return %loss, %g : tensor<f32>, tensor<8x8xf32>
}
