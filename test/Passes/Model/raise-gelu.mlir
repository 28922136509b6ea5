// RUN: ds-opt %s --ds-raise-gelu --canonicalize | FileCheck %s
// RUN: ds-opt %s --mlir-print-op-generic -o %t.before
// RUN: ds-opt %s --ds-raise-gelu --canonicalize --mlir-print-op-generic -o %t.after
// RUN: %if torch %{ %python %oracle/check_ir_equal.py %t.before %t.after | FileCheck %s --check-prefix=NUMBERS %}
// NUMBERS: 7 results compared

// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
// CHECK-LABEL: @cube
// CHECK-NEXT: %[[G:.*]] = ds.gelu tanh %arg0 : tensor<6xf32>
// CHECK-NEXT: return %[[G]]
func.func @cube(%x: tensor<6xf32>) -> tensor<6xf32> {
  %half = ds.constant dense<0.5> : tensor<6xf32>
  %one = ds.constant dense<1.0> : tensor<6xf32>
  %c = ds.constant dense<0.044715> : tensor<6xf32>
  %k = ds.constant dense<0.797884583> : tensor<6xf32>
  %h = ds.mul %x, %half : tensor<6xf32>
  %x2 = ds.mul %x, %x : tensor<6xf32>
  %x3 = ds.mul %x2, %x : tensor<6xf32>
  %cx3 = ds.mul %x3, %c : tensor<6xf32>
  %s = ds.add %x, %cx3 : tensor<6xf32>
  %u = ds.mul %s, %k : tensor<6xf32>
  %t = ds.tanh %u : tensor<6xf32>
  %g = ds.add %t, %one : tensor<6xf32>
  %r = ds.mul %h, %g : tensor<6xf32>
  return %r : tensor<6xf32>
}

// x * (0.5 * (1 + tanh(x * sqrt(2 / pi) * (1 + 0.044715 * x * x)))), of an x that is a product itself.
// CHECK-LABEL: @products
// CHECK-NEXT: %[[X:.*]] = ds.mul %arg0, %arg1 : tensor<6xf32>
// CHECK-NEXT: %[[G:.*]] = ds.gelu tanh %[[X]] : tensor<6xf32>
// CHECK-NEXT: return %[[G]]
func.func @products(%a: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<6xf32> {
  %half = ds.constant dense<0.5> : tensor<6xf32>
  %one = ds.constant dense<1.0> : tensor<6xf32>
  %c = ds.constant dense<0.044715> : tensor<6xf32>
  %k = ds.constant dense<0.797884583> : tensor<6xf32>
  %x = ds.mul %a, %b : tensor<6xf32>
  %cx = ds.mul %x, %c : tensor<6xf32>
  %cx2 = ds.mul %cx, %x : tensor<6xf32>
  %s = ds.add %one, %cx2 : tensor<6xf32>
  %kx = ds.mul %k, %x : tensor<6xf32>
  %u = ds.mul %kx, %s : tensor<6xf32>
  %t = ds.tanh %u : tensor<6xf32>
  %g = ds.add %one, %t : tensor<6xf32>
  %cdf = ds.mul %half, %g : tensor<6xf32>
  %r = ds.mul %x, %cdf : tensor<6xf32>
  return %r : tensor<6xf32>
}

// Multiplied by something else at once: a product of GELU, which is found before it.
// CHECK-LABEL: @gated
// CHECK-NEXT: %[[G:.*]] = ds.gelu tanh %arg0 : tensor<6xf32>
// CHECK-NEXT: %[[R:.*]] = ds.mul %[[G]], %arg1 : tensor<6xf32>
// CHECK-NEXT: return %[[R]]
func.func @gated(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {
  %half = ds.constant dense<0.5> : tensor<6xf32>
  %one = ds.constant dense<1.0> : tensor<6xf32>
  %c = ds.constant dense<0.044715> : tensor<6xf32>
  %k = ds.constant dense<0.797884583> : tensor<6xf32>
  %h = ds.mul %x, %half : tensor<6xf32>
  %x2 = ds.mul %x, %x : tensor<6xf32>
  %x3 = ds.mul %x2, %x : tensor<6xf32>
  %cx3 = ds.mul %x3, %c : tensor<6xf32>
  %s = ds.add %x, %cx3 : tensor<6xf32>
  %u = ds.mul %s, %k : tensor<6xf32>
  %t = ds.tanh %u : tensor<6xf32>
  %g = ds.add %t, %one : tensor<6xf32>
  %m = ds.mul %h, %g : tensor<6xf32>
  %r = ds.mul %m, %y : tensor<6xf32>
  return %r : tensor<6xf32>
}

// Other functions: another constant inside, no half, another x in the cube, the erf form.
// CHECK-LABEL: @others
// CHECK-NOT: ds.gelu
func.func @others(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %half = ds.constant dense<0.5> : tensor<6xf32>
  %one = ds.constant dense<1.0> : tensor<6xf32>
  %c = ds.constant dense<0.044715> : tensor<6xf32>
  %k = ds.constant dense<0.797884583> : tensor<6xf32>
  %other = ds.constant dense<0.7979> : tensor<6xf32>
  %h = ds.mul %x, %half : tensor<6xf32>
  %x2 = ds.mul %x, %x : tensor<6xf32>
  %x3 = ds.mul %x2, %x : tensor<6xf32>
  %cx3 = ds.mul %x3, %c : tensor<6xf32>
  %s = ds.add %x, %cx3 : tensor<6xf32>
  %u0 = ds.mul %s, %other : tensor<6xf32>
  %t0 = ds.tanh %u0 : tensor<6xf32>
  %g0 = ds.add %t0, %one : tensor<6xf32>
  %r0 = ds.mul %h, %g0 : tensor<6xf32>
  %u1 = ds.mul %s, %k : tensor<6xf32>
  %t1 = ds.tanh %u1 : tensor<6xf32>
  %g1 = ds.add %t1, %one : tensor<6xf32>
  %r1 = ds.mul %x, %g1 : tensor<6xf32>
  %y3 = ds.mul %x2, %y : tensor<6xf32>
  %cy3 = ds.mul %y3, %c : tensor<6xf32>
  %s2 = ds.add %x, %cy3 : tensor<6xf32>
  %u2 = ds.mul %s2, %k : tensor<6xf32>
  %t2 = ds.tanh %u2 : tensor<6xf32>
  %g2 = ds.add %t2, %one : tensor<6xf32>
  %r2 = ds.mul %h, %g2 : tensor<6xf32>
  %root = ds.constant dense<0.707106769> : tensor<6xf32>
  %u3 = ds.mul %x, %root : tensor<6xf32>
  %t3 = ds.erf %u3 : tensor<6xf32>
  %g3 = ds.add %t3, %one : tensor<6xf32>
  %r3 = ds.mul %h, %g3 : tensor<6xf32>
  return %r0, %r1, %r2, %r3 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}
