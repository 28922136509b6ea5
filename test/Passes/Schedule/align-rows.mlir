// RUN: ds-opt %s --ds-align-rows --split-input-file | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-align-rows{stages=true})' --split-input-file | FileCheck %s --check-prefix=STAGES
// STAGES-LABEL: @head
// STAGES: ds.alloc activations : !ds.buffer<tensor<32x257xbf16>, [257, 1], device>
// STAGES-LABEL: @head_of_stage
// STAGES: ds.alloc activations : !ds.buffer<tensor<32x264xbf16>, [264, 1], device>

// The head of a model of 257 words: logits, in whose place their gradient is made, and the two products that read that. 257 * 2 bytes
// are 2 more than 32 units of 16, so rows get 33 of them: 264 elements. The tied table and its gradient have rows of 64 elements.
!h = !ds.buffer<tensor<32x64xbf16>, [64, 1], device>
!w = !ds.buffer<tensor<257x64xbf16>, [64, 1], device>
!x = !ds.buffer<tensor<32x257xbf16>, [257, 1], device>
!x2 = !ds.buffer<tensor<16x257xbf16>, [257, 1], device>
!t = !ds.buffer<tensor<32xi64>, [1], device>
!n = !ds.buffer<tensor<f32>, [], device>
!y = !ds.buffer<tensor<2x16x257xbf16>, [4112, 257, 1], device>
!r = !ds.buffer<tensor<257x32xbf16>, [1, 257], device>
!l = !ds.buffer<tensor<16x257xbf16>, [257, 1], device>
!c = !ds.buffer<tensor<16x256xbf16>, [514, 1], device>
!d = !ds.buffer<tensor<256x64xbf16>, [64, 1], device>
!o = !ds.buffer<tensor<16x64xbf16>, [64, 1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// CHECK-LABEL: @head
// CHECK-SAME: %[[H:[a-z0-9]*]]: !ds.buffer<tensor<32x64xbf16>, [64, 1], device>, %[[W:[a-z0-9]*]]: !ds.buffer<tensor<257x64xbf16>, [64, 1], device>
func.func @head(%h: !h, %w: !w, %t: !t, %n: !n, %loss: !n, %count: !n, %dh: !h, %dw: !w) {
  // CHECK-NEXT: %[[MEMORY:.*]] = ds.alloc activations : !ds.buffer<tensor<32x264xbf16>, [264, 1], device>
  // CHECK-NEXT: %[[X:.*]] = ds.view %[[MEMORY]] offset 0 : !ds.buffer<tensor<32x264xbf16>, [264, 1], device> -> !ds.buffer<tensor<32x257xbf16>, [264, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[H]], %[[W]], %[[X]]) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<32x64xbf16>, [64, 1], device>, !ds.buffer<tensor<257x64xbf16>, [64, 1], device>, !ds.buffer<tensor<32x257xbf16>, [264, 1], device>
  // CHECK-NEXT: ds.call cross_entropy_with_gradient(%[[X]], %{{.*}}, %[[X]]) writes [3, 4, 5]
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[W]], %{{.*}})
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[H]], %{{.*}})
  // CHECK-NEXT: return
  %x = ds.alloc activations : !x
  ds.call matmul(%h, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !h, !w, !x
  ds.call cross_entropy_with_gradient(%x, %t, %n, %loss, %count, %x) writes [3, 4, 5] params [-100] on compute : !x, !t, !n, !n, !n, !x
  ds.call matmul(%x, %w, %dh) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !h
  ds.call matmul(%x, %h, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !h, !w
  return
}

// Forward and backward apart: the gradient has memory of its own. What the cross-entropy says of each row is no operand of products.
// CHECK-LABEL: @apart
func.func @apart(%h: !h, %w: !w, %t: !t, %n: !n, %loss: !n, %count: !n, %dh: !h) {
  // CHECK: ds.alloc activations : !ds.buffer<tensor<32x264xbf16>, [264, 1], device>
  // CHECK: ds.alloc gradients : !ds.buffer<tensor<32x264xbf16>, [264, 1], device>
  // CHECK: ds.alloc activations : !ds.buffer<tensor<32xf32>, [1], device>
  %x = ds.alloc activations : !x
  %dx = ds.alloc gradients : !x
  %lse = ds.alloc activations : !ds.buffer<tensor<32xf32>, [1], device>
  ds.call matmul(%h, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !h, !w, !x
  ds.call cross_entropy_forward(%x, %t, %loss, %lse, %count) writes [2, 3, 4] params [-100] on compute : !x, !t, !n, !ds.buffer<tensor<32xf32>, [1], device>, !n
  ds.call cross_entropy_backward(%x, %t, %lse, %count, %n, %dx) writes [5] params [-100] on compute : !x, !t, !ds.buffer<tensor<32xf32>, [1], device>, !n, !n, !x
  ds.call matmul(%dx, %w, %dh) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !h
  return
}

// Windows keep their elements: all rows in another shape, transposed, from row 16 on (16 * 264 = 4224), and columns 1 to 256 of
// every second row, whose stride is two rows'.
// CHECK-LABEL: @windows
func.func @windows(%h: !ds.buffer<tensor<2x16x64xbf16>, [1024, 64, 1], device>, %k: !h, %w: !w, %v: !ds.buffer<tensor<64x257xbf16>, [257, 1], device>, %d: !d, %dw: !w, %a: !o, %b: !o) {
  // CHECK-NEXT: %[[M:.*]] = ds.alloc activations : !ds.buffer<tensor<2x16x264xbf16>, [4224, 264, 1], device>
  // CHECK-NEXT: %[[Y:.*]] = ds.view %[[M]] offset 0 : {{.*}} -> !ds.buffer<tensor<2x16x257xbf16>, [4224, 264, 1], device>
  // CHECK-NEXT: %[[R:.*]] = ds.view %[[M]] offset 0 : {{.*}} -> !ds.buffer<tensor<257x32xbf16>, [1, 264], device>
  // CHECK-NEXT: %[[L:.*]] = ds.view %[[M]] offset 4224 : {{.*}} -> !ds.buffer<tensor<16x257xbf16>, [264, 1], device>
  // CHECK-NEXT: %[[C:.*]] = ds.view %[[M]] offset 1 : {{.*}} -> !ds.buffer<tensor<16x256xbf16>, [528, 1], device>
  // CHECK-NEXT: ds.call matmul(%{{.*}}, %{{.*}}, %[[Y]])
  // CHECK-NEXT: ds.call matmul(%[[R]],
  // CHECK-NEXT: ds.call matmul(%[[L]],
  // CHECK-NEXT: ds.call matmul(%[[C]],
  %y = ds.alloc activations : !y
  %r = ds.view %y offset 0 : !y -> !r
  %l = ds.view %y offset 4112 : !y -> !l
  %c = ds.view %y offset 1 : !y -> !c
  ds.call matmul(%h, %v, %y) writes [2] params [0, 0, 0, 0] on compute : !ds.buffer<tensor<2x16x64xbf16>, [1024, 64, 1], device>, !ds.buffer<tensor<64x257xbf16>, [257, 1], device>, !y
  ds.call matmul(%r, %k, %dw) writes [2] params [0, 0, 0, 0] on compute : !r, !h, !w
  ds.call matmul(%l, %w, %a) writes [2] params [0, 0, 0, 0] on compute : !l, !w, !o
  ds.call matmul(%c, %d, %b) writes [2] params [0, 0, 0, 0] on compute : !c, !d, !o
  return
}

// GPT-2's rows become whole lines of 128 bytes: 786 of them hold 50304 elements of 2 bytes. 257 elements of f32 (1028 bytes) become
// 65 units of 16. 1000 of 2 bytes are 125 units already. 105 would be 112, more than 1/16 longer.
// CHECK-LABEL: @pitches
func.func @pitches(%a: !o) {
  // CHECK: ds.alloc activations : !ds.buffer<tensor<16x50304xbf16>, [50304, 1], device>
  // CHECK: ds.alloc activations : !ds.buffer<tensor<16x260xf32>, [260, 1], device>
  // CHECK: ds.alloc activations : !ds.buffer<tensor<16x1000xbf16>, [1000, 1], device>
  // CHECK-NEXT: ds.call
  // CHECK: ds.alloc activations : !ds.buffer<tensor<16x105xbf16>, [105, 1], device>
  // CHECK-NEXT: ds.call
  %w0 = ds.alloc activations : !ds.buffer<tensor<64x50257xbf16>, [50257, 1], device>
  %x0 = ds.alloc activations : !ds.buffer<tensor<16x50257xbf16>, [50257, 1], device>
  ds.call matmul(%a, %w0, %x0) writes [2] params [0, 0, 0, 0] on compute : !o, !ds.buffer<tensor<64x50257xbf16>, [50257, 1], device>, !ds.buffer<tensor<16x50257xbf16>, [50257, 1], device>
  %x1 = ds.alloc activations : !ds.buffer<tensor<16x257xf32>, [257, 1], device>
  ds.call matmul(%a, %x1, %x1) writes [2] params [0, 0, 0, 0] on compute : !o, !ds.buffer<tensor<16x257xf32>, [257, 1], device>, !ds.buffer<tensor<16x257xf32>, [257, 1], device>
  %x2 = ds.alloc activations : !ds.buffer<tensor<16x1000xbf16>, [1000, 1], device>
  ds.call matmul(%a, %x2, %x2) writes [2] params [0, 0, 0, 0] on compute : !o, !ds.buffer<tensor<16x1000xbf16>, [1000, 1], device>, !ds.buffer<tensor<16x1000xbf16>, [1000, 1], device>
  %x3 = ds.alloc activations : !ds.buffer<tensor<16x105xbf16>, [105, 1], device>
  ds.call matmul(%a, %x3, %x3) writes [2] params [0, 0, 0, 0] on compute : !o, !ds.buffer<tensor<16x105xbf16>, [105, 1], device>, !ds.buffer<tensor<16x105xbf16>, [105, 1], device>
  return
}

// A kernel that adds up rows walks them as well. It is made anew for the strides; of what a state is, it stays.
// CHECK-NOT: ds.kernel @only_there inputs
ds.kernel @only_there inputs 1 buffers [!x, !x] {
^bb0(%e: tensor<32x257xbf16>):
  %s = ds.reduce sum %e dims [1] : tensor<32x257xbf16> -> tensor<32xbf16>
  %b = ds.broadcast %s dims [0] : tensor<32xbf16> -> tensor<32x257xbf16>
  %d = ds.div %e, %b : tensor<32x257xbf16>
  ds.yield %d : tensor<32x257xbf16>
}
// CHECK: ds.kernel @there_and_here inputs 1 buffers [!ds.buffer<tensor<32x257xbf16>, [257, 1], device>, !ds.buffer<tensor<32xbf16>, [1], device>]
ds.kernel @there_and_here inputs 1 buffers [!x, !ds.buffer<tensor<32xbf16>, [1], device>] {
^bb0(%e: tensor<32x257xbf16>):
  %s = ds.reduce max %e dims [1] : tensor<32x257xbf16> -> tensor<32xbf16>
  ds.yield %s : tensor<32xbf16>
}
// CHECK-LABEL: @rows
func.func @rows(%h: !h, %w: !w, %s: !x, %m: !ds.buffer<tensor<32xbf16>, [1], device>, %dh: !h) {
  // CHECK: %[[X:.*]] = ds.view %{{.*}} offset 0 : !ds.buffer<tensor<32x264xbf16>, [264, 1], device>
  // CHECK: ds.launch @[[ONLY:only_there_[0-9]]] ins(%[[X]]) outs(%[[X]])
  // CHECK: ds.launch @[[BOTH:there_and_here_[0-9]]] ins(%[[X]])
  // CHECK: ds.launch @[[BOTH]] ins(%[[X]])
  // CHECK: ds.launch @there_and_here ins(%arg2)
  %x = ds.alloc activations : !x
  ds.call matmul(%h, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !h, !w, !x
  ds.launch @only_there ins(%x) outs(%x) on compute : (!x) -> !x
  ds.launch @there_and_here ins(%x) outs(%m) on compute : (!x) -> !ds.buffer<tensor<32xbf16>, [1], device>
  ds.launch @there_and_here ins(%x) outs(%m) on compute : (!x) -> !ds.buffer<tensor<32xbf16>, [1], device>
  ds.launch @there_and_here ins(%s) outs(%m) on compute : (!x) -> !ds.buffer<tensor<32xbf16>, [1], device>
  ds.call matmul(%x, %w, %dh) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !h
  return
}

// What somebody reads who takes no rows that lie apart stays packed: an elementwise kernel, a copy, a product with GELU that makes it, a function that
// no product is beside, and a window across the ends of rows.
ds.kernel @double inputs 1 buffers [!x, !x] {
^bb0(%e: tensor<32x257xbf16>):
  %s = ds.add %e, %e : tensor<32x257xbf16>
  ds.yield %s : tensor<32x257xbf16>
}
// CHECK-LABEL: @stays_packed
// CHECK-NOT: 264
func.func @stays_packed(%h: !h, %w: !w, %t: !t, %n: !n, %count: !n, %lse: !ds.buffer<tensor<32xf32>, [1], device>, %s: !x, %q: !ds.buffer<tensor<257x1xbf16>, [1, 1], device>, %z: !ds.buffer<tensor<16x1xbf16>, [1, 1], device>) {
  %kernel = ds.alloc activations : !x
  ds.call matmul(%h, %w, %kernel) writes [2] params [0, 1, 0, 0] on compute : !h, !w, !x
  ds.launch @double ins(%kernel) outs(%s) on compute : (!x) -> !x
  %copied = ds.alloc activations : !x
  ds.call matmul(%h, %w, %copied) writes [2] params [0, 1, 0, 0] on compute : !h, !w, !x
  ds.call copy(%copied, %s) writes [1] params [] on compute : !x, !x
  %gelu = ds.alloc activations : !x
  ds.call matmul(%h, %w, %gelu) writes [2] params [0, 1, 0, 2] on compute : !h, !w, !x
  %alone = ds.alloc activations : !x
  ds.call cross_entropy_forward(%alone, %t, %n, %lse, %count) writes [2, 3, 4] params [-100] on compute : !x, !t, !n, !ds.buffer<tensor<32xf32>, [1], device>, !n
  // CHECK: return
  // CHECK: ds.kernel @only_there_{{[0-9]}} inputs 1 buffers [!ds.buffer<tensor<32x257xbf16>, [264, 1], device>, !ds.buffer<tensor<32x257xbf16>, [264, 1], device>] {
  // CHECK: ds.kernel @there_and_here_{{[0-9]}} inputs 1 buffers [!ds.buffer<tensor<32x257xbf16>, [264, 1], device>, !ds.buffer<tensor<32xbf16>, [1], device>] {
  %across = ds.alloc activations : !x
  %flat = ds.view %across offset 128 : !x -> !x2
  ds.call matmul(%flat, %q, %z) writes [2] params [0, 0, 0, 0] on compute : !x2, !ds.buffer<tensor<257x1xbf16>, [1, 1], device>, !ds.buffer<tensor<16x1xbf16>, [1, 1], device>
  return
}
}

// -----

!half = !ds.buffer<tensor<16x64xbf16>, [64, 1], device>
!rows = !ds.buffer<tensor<16x257xbf16>, [257, 1], device>
// What ranks exchange is packed, and so is what they see windows of their own of, and a window of a window.
!v = !ds.buffer<tensor<32x64xbf16>, [64, 1], device>
!u = !ds.buffer<tensor<257x64xbf16>, [64, 1], device>
!s = !ds.buffer<tensor<32x257xbf16>, [257, 1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
ds.mesh @mesh axes [dp = 2]
// CHECK-LABEL: @summed
// CHECK-NOT: 264
// CHECK-LABEL: @shifted
// CHECK-NOT: 264
// CHECK-LABEL: @nested
// CHECK-NOT: 264
func.func @summed(%h: !v, %w: !u) {
  %x = ds.alloc gradients : !s
  ds.call matmul(%h, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !v, !u, !s
  ds.communicate all_reduce ins(%x) outs(%x) reduce sum along dp carries bucket on reduce : (!s) -> !s
  return
}
func.func @shifted(%w: !u, %a: !half) {
  %x = ds.alloc activations : !s
  %own = ds.view %x offset 0 shifts [dp = 4112] : !s -> !rows
  ds.call matmul(%own, %w, %a) writes [2] params [0, 0, 0, 0] on compute : !rows, !u, !half
  return
}
func.func @nested(%w: !u, %a: !half) {
  %x = ds.alloc activations : !s
  %upper = ds.view %x offset 0 : !s -> !rows
  %again = ds.view %upper offset 0 : !rows -> !rows
  ds.call matmul(%upper, %w, %a) writes [2] params [0, 0, 0, 0] on compute : !rows, !u, !half
  ds.call matmul(%again, %w, %a) writes [2] params [0, 0, 0, 0] on compute : !rows, !u, !half
  return
}
}

// -----

// The CPU packs what it multiplies anyway.
!v = !ds.buffer<tensor<32x64xbf16>, [64, 1], device>
!u = !ds.buffer<tensor<257x64xbf16>, [64, 1], device>
!s = !ds.buffer<tensor<32x257xbf16>, [257, 1], device>
module attributes {ds.machine = #ds.machine<target = "cpu">} {
// CHECK-LABEL: @on_the_cpu
// CHECK-NOT: 264
func.func @on_the_cpu(%h: !v, %w: !u) {
  %x = ds.alloc activations : !s
  ds.call matmul(%h, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !v, !u, !s
  return
}
}

// -----

// Of a stage that is asked for by itself: what waits for a backward of its own is to have the longer rows already.
!h = !ds.buffer<tensor<32x64xbf16>, [64, 1], device>
!w = !ds.buffer<tensor<257x64xbf16>, [64, 1], device>
!x = !ds.buffer<tensor<32x257xbf16>, [257, 1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
ds.mesh @mesh axes [pp = 2] stages pp
// CHECK-LABEL: @head_of_stage
// CHECK: ds.alloc activations : !ds.buffer<tensor<32x264xbf16>, [264, 1], device>
func.func @head_of_stage(%h: !h, %w: !w, %dh: !h) {
  %x = ds.alloc activations : !x
  ds.call matmul(%h, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !h, !w, !x
  ds.call matmul(%x, %w, %dh) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !h
  return
}
}
