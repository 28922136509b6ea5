// RUN: sed 's/ASKED//' %s | ds-opt - --ds-overlap-exchanges | FileCheck %s
// RUN: sed 's/ASKED/tp_overlap_comm = false/' %s | ds-opt - --ds-overlap-exchanges | FileCheck %s --check-prefix=NEVER

// %d is the gradient of what a layer has made, %n what it has read: its weight's gradient is %g, and %y is exchanged.
!d = !ds.buffer<tensor<4096x1024xbf16>, [1024, 1], device>
!w = !ds.buffer<tensor<1024x2048xbf16>, [2048, 1], device>
!y = !ds.buffer<tensor<4096x2048xbf16>, [2048, 1], device>
!b = !ds.buffer<tensor<2048xf32>, [1], device>

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", cluster = "dgx-h100">, ds.training = #ds.training<tensor_parallel = {ASKED}>} {
  ds.mesh @mesh axes [dp = 2, tp = 4] tensors tp

  // E5: the gradient of the weight hides the sum, and nothing has to be cut.
  // CHECK-LABEL: @deferred
  // CHECK-NEXT: ds.call matmul(%arg0, %arg2, %arg4)
  // CHECK-NEXT: ds.communicate all_reduce
  // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg3)
  // CHECK-NEXT: return
  //
  // NEVER-LABEL: @deferred
  // NEVER-NEXT: ds.call matmul(%arg0, %arg1, %arg3)
  // NEVER-NEXT: ds.call matmul(%arg0, %arg2, %arg4)
  // NEVER-NEXT: ds.communicate all_reduce
  func.func @deferred(%d: !d {ds.input = "d"}, %n: !y {ds.input = "n"}, %w: !w {ds.input = "w"}, %g: !w {ds.input = "g"}, %y: !y {ds.input = "y"}) {
    ds.call matmul(%d, %n, %g) writes [2] params [1, 0, 0, 0] on compute : !d, !y, !w
    ds.call matmul(%d, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !d, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // A product that makes what is exchanged, or reads what is made, stays.
  // CHECK-LABEL: @needed
  // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2)
  // CHECK: ds.call matmul(%{{.*}}, %arg2, %{{.*}})
  // CHECK: ds.communicate all_reduce
  func.func @needed(%d: !d {ds.input = "d"}, %n: !y {ds.input = "n"}, %g: !w {ds.input = "g"}, %y: !y {ds.input = "y"}) {
    ds.call matmul(%d, %n, %g) writes [2] params [1, 0, 0, 0] on compute : !d, !y, !w
    ds.call matmul(%d, %g, %y) writes [2] params [0, 0, 0, 0] on compute : !d, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // E6: not past another exchange.
  // CHECK-LABEL: @behind_another
  // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg3)
  // CHECK-NEXT: ds.communicate all_reduce ins(%arg5)
  // CHECK: ds.call matmul({{.*}}, %arg2, {{.*}})
  func.func @behind_another(%d: !d {ds.input = "d"}, %n: !y {ds.input = "n"}, %w: !w {ds.input = "w"}, %g: !w {ds.input = "g"}, %y: !y {ds.input = "y"}, %b: !b {ds.input = "b"}) {
    ds.call matmul(%d, %n, %g) writes [2] params [1, 0, 0, 0] on compute : !d, !y, !w
    ds.communicate all_reduce ins(%b) outs(%b) reduce sum along dp carries statistic on reduce : (!b) -> !b
    ds.call matmul(%d, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !d, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // E5: what the weight's gradient reads ends with it. Beside %y it would be 16 MiB more than is live anywhere.
  // CHECK-LABEL: @memory_ends
  // CHECK: ds.call fill
  // CHECK-NEXT: ds.call matmul(%arg0, %{{.*}}, %arg2)
  // CHECK: ds.call matmul({{.*}}, %arg1, {{.*}})
  // CHECK: ds.communicate all_reduce
  func.func @memory_ends(%d: !d {ds.input = "d"}, %w: !w {ds.input = "w"}, %g: !w {ds.input = "g"}, %o: !b {ds.input = "o"}) {
    %n = ds.alloc activations : !y
    ds.call fill(%n) writes [0] params [1.0] on compute : !y
    ds.call matmul(%d, %n, %g) writes [2] params [1, 0, 0, 0] on compute : !d, !y, !w
    %y = ds.alloc activations : !y
    ds.call matmul(%d, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !d, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    ds.call fill(%y) writes [0] params [1.0] on compute : !y
    return
  }

  // As much is live elsewhere.
  // CHECK-LABEL: @memory_is_there
  // CHECK: ds.call matmul({{.*}}, %arg1, {{.*}})
  // CHECK: ds.communicate all_reduce
  // CHECK: ds.call matmul(%arg0, %{{.*}}, %arg2)
  func.func @memory_is_there(%d: !d {ds.input = "d"}, %w: !w {ds.input = "w"}, %g: !w {ds.input = "g"}, %o: !b {ds.input = "o"}) {
    %p = ds.alloc activations : !y
    %q = ds.alloc activations : !y
    ds.call copy(%p, %q) writes [1] params [] on compute : !y, !y
    %n = ds.alloc activations : !y
    ds.call fill(%n) writes [0] params [1.0] on compute : !y
    ds.call matmul(%d, %n, %g) writes [2] params [1, 0, 0, 0] on compute : !d, !y, !w
    %y = ds.alloc activations : !y
    ds.call matmul(%d, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !d, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    ds.call fill(%y) writes [0] params [1.0] on compute : !y
    return
  }
}
