// RUN: ds-opt %s --ds-apply-gelu --split-input-file | FileCheck %s

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// Nothing else reads GELU's input: it is not stored.
// CHECK-LABEL: @evaluation
func.func @evaluation(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>) -> tensor<4x6xbf16> {
  // CHECK-NEXT: %[[G:.*]] = ds.matmul %arg0, %arg1 transpose_rhs epilogue(gelu) : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  // CHECK-NEXT: return %[[G]]
  %h = ds.matmul %x, %w transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %g = ds.fused(%h) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  return %g : tensor<4x6xbf16>
}

// A product that is made again has no epilogue, and neither has any that could be its first: both give the same bits.
// CHECK-LABEL: @again
// CHECK-NOT: epilogue
// CHECK: return
func.func @again(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>) {
  %h = ds.matmul %x, %w transpose_rhs {ds.work = #ds.work<forward>} : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %g = ds.fused(%h) {ds.work = #ds.work<forward>} : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  %late = ds.after %x, %g : tensor<4x8xbf16>, tensor<4x6xbf16>
  %more = ds.matmul %late, %w transpose_rhs {ds.work = #ds.work<recompute>} : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  return %g, %more : tensor<4x6xbf16>, tensor<4x6xbf16>
}

// A step: forward keeps the input, backward takes GELU again where it needs it, and its gradient with the product
// that reaches it. What adds up the gradient for the bias reads it as before.
// CHECK-LABEL: @training
func.func @training(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>, %b: tensor<6xf16>, %v: tensor<6x8xf16>, %dy: tensor<4x8xf16>) -> (tensor<4x8xf16>, tensor<6x8xf16>, tensor<4x6xf16>, tensor<6xf16>) {
  // CHECK-NEXT: %[[G:.*]], %[[H:.*]] = ds.matmul %arg0, %arg1 bias(%arg2) epilogue(gelu) : tensor<4x8xf16>, tensor<8x6xf16>, tensor<6xf16> -> tensor<4x6xf16>, tensor<4x6xf16>
  // CHECK-NEXT: %[[Y:.*]] = ds.matmul %[[G]], %arg3
  // CHECK-NEXT: %[[AGAIN:.*]] = ds.fused(%[[H]])
  // CHECK: ds.gelu tanh
  // CHECK: %[[DV:.*]] = ds.matmul %[[AGAIN]], %arg4 transpose_lhs
  // CHECK-NEXT: %[[DH:.*]] = ds.matmul %arg4, %arg3 input(%[[H]]) transpose_rhs epilogue(gelu_gradient) : tensor<4x8xf16>, tensor<6x8xf16> input tensor<4x6xf16> -> tensor<4x6xf16>
  // CHECK-NEXT: %[[DB:.*]] = ds.fused(%[[DH]])
  // CHECK: return %[[Y]], %[[DV]], %[[DH]], %[[DB]]
  %h = ds.matmul %x, %w bias(%b) : tensor<4x8xf16>, tensor<8x6xf16>, tensor<6xf16> -> tensor<4x6xf16>
  %g = ds.fused(%h) : (tensor<4x6xf16>) -> tensor<4x6xf16> {
  ^bb0(%a: tensor<4x6xf16>):
    %wide = ds.convert %a : tensor<4x6xf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xf16>
    ds.yield %r : tensor<4x6xf16>
  }
  %y = ds.matmul %g, %v : tensor<4x6xf16>, tensor<6x8xf16> -> tensor<4x8xf16>
  %again = ds.fused(%h) : (tensor<4x6xf16>) -> tensor<4x6xf16> {
  ^bb0(%a: tensor<4x6xf16>):
    %wide = ds.convert %a : tensor<4x6xf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xf16>
    ds.yield %r : tensor<4x6xf16>
  }
  %dv = ds.matmul %again, %dy transpose_lhs : tensor<4x6xf16>, tensor<4x8xf16> -> tensor<6x8xf16>
  %dg = ds.matmul %dy, %v transpose_rhs : tensor<4x8xf16>, tensor<6x8xf16> -> tensor<4x6xf16>
  %dh = ds.fused(%dg, %h) : (tensor<4x6xf16>, tensor<4x6xf16>) -> tensor<4x6xf16> {
  ^bb0(%a: tensor<4x6xf16>, %c: tensor<4x6xf16>):
    %grad = ds.convert %a : tensor<4x6xf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xf16> -> tensor<4x6xf32>
    %gelu = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xf16>
    ds.yield %r : tensor<4x6xf16>
  }
  %db = ds.fused(%dh) : (tensor<4x6xf16>) -> tensor<6xf16> {
  ^bb0(%a: tensor<4x6xf16>):
    %wide = ds.convert %a : tensor<4x6xf16> -> tensor<4x6xf32>
    %sum = ds.reduce sum %wide dims [0] : tensor<4x6xf32> -> tensor<6xf32>
    %r = ds.convert %sum : tensor<6xf32> -> tensor<6xf16>
    ds.yield %r : tensor<6xf16>
  }
  return %y, %dv, %dh, %db : tensor<4x8xf16>, tensor<6x8xf16>, tensor<4x6xf16>, tensor<6xf16>
}

// GELU again beside its gradient: the rest of the region reads the input alone.
// CHECK-LABEL: @leaves_the_rest
func.func @leaves_the_rest(%h: tensor<4x6xbf16>, %v: tensor<6x8xbf16>, %dy: tensor<4x8xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>) {
  // CHECK-NEXT: %[[DH:.*]] = ds.matmul %arg2, %arg1 input(%arg0) transpose_rhs epilogue(gelu_gradient)
  // CHECK-NEXT: %[[G:.*]] = ds.fused(%arg0) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x6xbf16>):
  // CHECK-NEXT: %[[WIDE:.*]] = ds.convert %[[A]]
  // CHECK-NEXT: %[[GELU:.*]] = ds.gelu tanh %[[WIDE]]
  // CHECK-NEXT: %[[R:.*]] = ds.convert %[[GELU]]
  // CHECK-NEXT: ds.yield %[[R]]
  // CHECK: return %[[DH]], %[[G]]
  %dg = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %r:2 = ds.fused(%dg, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>) {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    %g = ds.gelu tanh %wide : tensor<4x6xf32>
    %gl = ds.convert %g : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %dl, %gl : tensor<4x6xbf16>, tensor<4x6xbf16>
  }
  return %r#0, %r#1 : tensor<4x6xbf16>, tensor<4x6xbf16>
}

// The rest reads the rounded gradient, in the place of what reached GELU.
// CHECK-LABEL: @rest_reads_gradient
func.func @rest_reads_gradient(%h: tensor<4x6xbf16>, %v: tensor<6x8xbf16>, %dy: tensor<4x8xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xf32>) {
  // CHECK-NEXT: %[[DH:.*]] = ds.matmul {{.*}} epilogue(gelu_gradient)
  // CHECK-NEXT: %[[S:.*]] = ds.fused(%[[DH]]) : (tensor<4x6xbf16>) -> tensor<4x6xf32> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x6xbf16>):
  // CHECK-NEXT: %[[WIDE:.*]] = ds.convert %[[A]]
  // CHECK-NEXT: ds.mul %[[WIDE]], %[[WIDE]]
  %dg = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %r:2 = ds.fused(%dg, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xf32>) {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    %dw = ds.convert %dl : tensor<4x6xbf16> -> tensor<4x6xf32>
    %s = ds.mul %dw, %dw : tensor<4x6xf32>
    ds.yield %dl, %s : tensor<4x6xbf16>, tensor<4x6xf32>
  }
  return %r#0, %r#1 : tensor<4x6xbf16>, tensor<4x6xf32>
}

// The rest would read both again: nothing is saved.
// CHECK-LABEL: @saves_nothing
func.func @saves_nothing(%h: tensor<4x6xbf16>, %v: tensor<6x8xbf16>, %dy: tensor<4x8xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xf32>) {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %dg = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %r:2 = ds.fused(%dg, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xf32>) {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    %dw = ds.convert %dl : tensor<4x6xbf16> -> tensor<4x6xf32>
    %s = ds.mul %dw, %wide : tensor<4x6xf32>
    ds.yield %dl, %s : tensor<4x6xbf16>, tensor<4x6xf32>
  }
  return %r#0, %r#1 : tensor<4x6xbf16>, tensor<4x6xf32>
}

// The unrounded gradient is read: a product gives none.
// CHECK-LABEL: @reads_unrounded_gradient
func.func @reads_unrounded_gradient(%h: tensor<4x6xbf16>, %v: tensor<6x8xbf16>, %dy: tensor<4x8xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xf32>) {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %dg = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %r:2 = ds.fused(%dg, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xf32>) {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %dl, %d : tensor<4x6xbf16>, tensor<4x6xf32>
  }
  return %r#0, %r#1 : tensor<4x6xbf16>, tensor<4x6xf32>
}

// Something else reads what reaches GELU: it is stored anyway.
// CHECK-LABEL: @gradient_has_two_readers
func.func @gradient_has_two_readers(%h: tensor<4x6xbf16>, %v: tensor<6x8xbf16>, %dy: tensor<4x8xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>) {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %dg = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %dh = ds.fused(%dg, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %dl : tensor<4x6xbf16>
  }
  return %dg, %dh : tensor<4x6xbf16>, tensor<4x6xbf16>
}

// A product that accumulates, or adds a bias, and one that comes before GELU's input is there.
// CHECK-LABEL: @gradient_of_other_products
func.func @gradient_of_other_products(%h: tensor<4x6xbf16>, %v: tensor<6x8xbf16>, %dy: tensor<4x8xbf16>, %sum: tensor<4x6xbf16>, %b: tensor<6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xbf16>) {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %added = ds.matmul %dy, %v into(%sum) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> into tensor<4x6xbf16> -> tensor<4x6xbf16>
  %dh = ds.fused(%added, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %dl : tensor<4x6xbf16>
  }
  %biased = ds.matmul %dy, %v bias(%b) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  %dh1 = ds.fused(%biased, %h) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %dl : tensor<4x6xbf16>
  }
  %early = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %late = ds.matmul %dy, %v transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %dh2 = ds.fused(%early, %late) : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>, %c: tensor<4x6xbf16>):
    %grad = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %wide = ds.convert %c : tensor<4x6xbf16> -> tensor<4x6xf32>
    %d = ds.gelu_grad tanh %grad, %wide : tensor<4x6xf32>
    %dl = ds.convert %d : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %dl : tensor<4x6xbf16>
  }
  return %dh, %dh1, %dh2 : tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xbf16>
}

// Regions that do more than GELU, or another form of it.
// CHECK-LABEL: @other_regions
func.func @other_regions(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xf32>) {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %h0 = ds.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %g0 = ds.fused(%h0) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  %h1 = ds.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %g1 = ds.fused(%h1) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %more = ds.mul %gelu, %wide : tensor<4x6xf32>
    %r = ds.convert %more : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  %h2 = ds.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
  %g2 = ds.fused(%h2) : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<4x6xf32>):
    %gelu = ds.gelu tanh %a : tensor<4x6xf32>
    ds.yield %gelu : tensor<4x6xf32>
  }
  return %g0, %g1, %g2 : tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xf32>
}

// Products that accumulate or have relu, and one with another product behind it: GELU is taken where it is wanted.
// CHECK-LABEL: @other_products
func.func @other_products(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %sum: tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xbf16>) {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %h0 = ds.matmul %x, %w into(%sum) : tensor<4x8xbf16>, tensor<8x6xbf16> into tensor<4x6xbf16> -> tensor<4x6xbf16>
  %g0 = ds.fused(%h0) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  %h1 = ds.matmul %x, %w epilogue(relu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %g1 = ds.fused(%h1) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  %h2 = ds.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %other = ds.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %g2 = ds.fused(%h2) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  return %g0, %g1, %g2, %other : tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x6xbf16>
}
}

// -----

// On the CPU a pass over what lies in its caches costs less than a product that no library has.
// CHECK-LABEL: @cpu
func.func @cpu(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) -> tensor<4x6xbf16> {
  // CHECK-NOT: epilogue(gelu
  // CHECK: return
  %h = ds.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %g = ds.fused(%h) : (tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  ^bb0(%a: tensor<4x6xbf16>):
    %wide = ds.convert %a : tensor<4x6xbf16> -> tensor<4x6xf32>
    %gelu = ds.gelu tanh %wide : tensor<4x6xf32>
    %r = ds.convert %gelu : tensor<4x6xf32> -> tensor<4x6xbf16>
    ds.yield %r : tensor<4x6xbf16>
  }
  return %g : tensor<4x6xbf16>
}
