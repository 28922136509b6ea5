// RUN: ds-opt %s --ds-overlap-exchanges | FileCheck %s
// RUN: ds-opt %s --ds-overlap-exchanges --ds-insert-events --ds-verify-scheduled --ds-verify-collectives -o /dev/null
// RUN: sed 's/tp_overlap_comm = true/tp_overlap_comm = false/' %s | ds-opt - --ds-overlap-exchanges | FileCheck %s --check-prefix=NEVER
// RUN: sed 's/tp_overlap_comm = true//' %s | ds-opt - --ds-overlap-exchanges=remarks 2>&1 | FileCheck %s --check-prefix=CHOSEN

// 8 ranks of a node, products of 4096 rows that are two samples of 2048; !rows is what a rank has of them, 2 x 256.
!few = !ds.buffer<tensor<64x32xbf16>, [32, 1], device>
!small = !ds.buffer<tensor<32x32xbf16>, [32, 1], device>
!x = !ds.buffer<tensor<4096x1024xbf16>, [1024, 1], device>
!w = !ds.buffer<tensor<2048x1024xbf16>, [1024, 1], device>
!y = !ds.buffer<tensor<4096x2048xbf16>, [2048, 1], device>
!b = !ds.buffer<tensor<2048xbf16>, [1], device>
!rows = !ds.buffer<tensor<1x2x524288xbf16>, [1048576, 524288, 1], device>
!byrank = !ds.buffer<tensor<8x2x524288xbf16>, [1048576, 524288, 1], device>
!ranksinfront = !ds.buffer<tensor<8x2x524288xbf16>, [524288, 4194304, 1], device>
!bysample = !ds.buffer<tensor<2x8x524288xbf16>, [4194304, 524288, 1], device>
!samplesinfront = !ds.buffer<tensor<2x8x524288xbf16>, [524288, 1048576, 1], device>

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", cluster = "dgx-h100">, ds.training = #ds.training<tensor_parallel = {tp_overlap_comm = true}>} {
  ds.mesh @mesh axes [tp = 8] tensors tp

// CHOSEN: {{[248]}} pieces: {{.*}} us in place of

  // Not a product by rows: its rows are the left factor's columns.
  // CHECK-LABEL: @transposed_rows
  // CHECK-COUNT-1: ds.call matmul
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @transposed_rows(%x: !ds.buffer<tensor<1024x4096xbf16>, [4096, 1], device> {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [1, 1, 0, 0] on compute : !ds.buffer<tensor<1024x4096xbf16>, [4096, 1], device>, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // Sums of columns beside the product are made of all rows.
  // CHECK-LABEL: @sums_of_columns
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @sums_of_columns(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}, %b: !b {ds.input = "b"}) {
    ds.call matmul(%x, %w, %y, %b) writes [2, 3] params [0, 1, 0, 0, 2] on compute : !x, !w, !y, !b
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // What is exchanged is not what the product has made: a fill has touched it since.
  // CHECK-LABEL: @touched_between
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @touched_between(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y
    ds.call fill(%y) writes [0] params [0.0] on compute : !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // The sum of a piece would lie where the product of the next reads.
  // CHECK-LABEL: @written_where_it_reads
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @written_where_it_reads(%x: !y {ds.input = "x"}, %w: !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device> {ds.input = "w"}, %y: !y {ds.input = "y"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !y, !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device>, !y
    ds.communicate all_reduce ins(%y) outs(%x) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // Gradients of parameters are none of ours.
  // CHECK-LABEL: @bucket
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @bucket(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp carries bucket on reduce : (!y) -> !y
    return
  }

  // E1: pieces of as many rows, the sum of each behind it, in its place; the bias goes with each. What stood between comes
  // after all.
  // CHECK-LABEL: @whole_sum
  // CHECK: %[[X0:.*]] = ds.view %arg0 offset 0 : {{.*}} -> !ds.buffer<tensor<[[M:[0-9]+]]x1024xbf16>, [1024, 1], device>
  // CHECK: %[[Y0:.*]] = ds.view %arg2 offset 0 : {{.*}} -> !ds.buffer<tensor<[[M]]x2048xbf16>, [2048, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X0]], %arg1, %[[Y0]], %arg3)
  // CHECK-NEXT: %[[S0:.*]] = ds.view %arg2 offset 0 : {{.*}} -> !ds.buffer<tensor<[[N:[0-9]+]]xbf16>, [1], device>
  // CHECK-NEXT: ds.communicate all_reduce ins(%[[S0]]) outs(%[[S0]])
  // CHECK: %[[Y1:.*]] = ds.view %arg2 offset [[N]] : {{.*}} -> !ds.buffer<tensor<[[M]]x2048xbf16>, [2048, 1], device>
  // CHECK-NEXT: ds.call matmul(%{{.*}}, %arg1, %[[Y1]], %arg3)
  // CHECK-NEXT: %[[S1:.*]] = ds.view %arg2 offset [[N]]
  // CHECK-NEXT: ds.communicate all_reduce ins(%[[S1]]) outs(%[[S1]])
  // CHECK: ds.call fill(%arg4)
  // CHECK-NEXT: return
  //
  // NEVER-LABEL: @whole_sum
  // NEVER-COUNT-1: ds.communicate
  // NEVER-NOT: ds.communicate
  // NEVER: return
  func.func @whole_sum(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}, %b: !b {ds.input = "b"}, %z: !b {ds.input = "z"}) {
    ds.call matmul(%x, %w, %y, %b) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y, !b
    ds.call fill(%z) writes [0] params [0.0] on compute : !b
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!y) -> !y
    return
  }

  // 64 rows: a latency more takes longer than it hides. It is cut where that is asked for, and only there.
  // CHECK-LABEL: @few_rows
  // CHECK-COUNT-2: ds.communicate
  //
  // CHOSEN-LABEL: @few_rows
  // CHOSEN-COUNT-1: ds.communicate
  // CHOSEN-NOT: ds.communicate
  // CHOSEN: return
  func.func @few_rows(%x: !few {ds.input = "x"}, %w: !small {ds.input = "w"}, %y: !few {ds.input = "y"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !few, !small, !few
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!few) -> !few
    return
  }

  // E2: each sample's rows are scattered from where they were made; the copy is gone, and its memory.
  // CHECK-LABEL: @scattered_sum
  // CHECK-NOT: ds.alloc
  // CHECK: ds.call matmul
  // CHECK-NEXT: %[[A:.*]] = ds.view %arg2 offset 0 : {{.*}} -> !ds.buffer<tensor<4194304xbf16>, [1], device>
  // CHECK-NEXT: %[[B:.*]] = ds.view %arg3 offset 0 : {{.*}} -> !ds.buffer<tensor<524288xbf16>, [1], device>
  // CHECK-NEXT: ds.communicate reduce_scatter ins(%[[A]]) outs(%[[B]])
  // CHECK: ds.call matmul
  // CHECK-NEXT: %[[C:.*]] = ds.view %arg2 offset 4194304
  // CHECK-NEXT: %[[D:.*]] = ds.view %arg3 offset 524288
  // CHECK-NEXT: ds.communicate reduce_scatter ins(%[[C]]) outs(%[[D]])
  // CHECK-NOT: ds.call copy
  // CHECK: return
  func.func @scattered_sum(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}, %r: !rows {ds.input = "r"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y
    %front = ds.view %y offset 0 : !y -> !ranksinfront
    %packed = ds.alloc activations : !byrank
    ds.call copy(%front, %packed) writes [1] params [] on compute : !ranksinfront, !byrank
    ds.communicate reduce_scatter ins(%packed) outs(%r) reduce sum along tp on exchange : (!byrank) -> !rows
    return
  }

  // E4: of one sample each piece has some of each rank's rows, one after the other, from a product of a batch that skips the others.
  // Rank r keeps its rows of the first piece before those of the second.
  // CHECK-LABEL: @one_sample
  // CHECK: %[[X0:.*]] = ds.view %arg0 offset 0 : {{.*}} -> !ds.buffer<tensor<8x[[M:[0-9]+]]x1024xbf16>, [524288, 1024, 1], device>
  // CHECK: %[[Y0:.*]] = ds.view %[[Y:.*]] offset 0 : {{.*}} -> !ds.buffer<tensor<8x[[M]]x2048xbf16>, [[[STEP:[0-9]+]], 2048, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X0]], %arg1, %[[Y0]], %arg3)
  // CHECK-NEXT: %[[S0:.*]] = ds.view %[[Y]] offset 0 : {{.*}} -> !ds.buffer<tensor<[[ALL:[0-9]+]]xbf16>, [1], device>
  // CHECK-NEXT: %[[R0:.*]] = ds.view %arg2 offset 0 : {{.*}} -> !ds.buffer<tensor<[[STEP]]xbf16>, [1], device>
  // CHECK-NEXT: ds.communicate reduce_scatter ins(%[[S0]]) outs(%[[R0]])
  // CHECK: ds.view %arg0 offset {{[0-9]+}} : {{.*}} -> !ds.buffer<tensor<8x[[M]]x1024xbf16>, [524288, 1024, 1], device>
  // CHECK: ds.view %[[Y]] offset [[ALL]] : {{.*}} -> !ds.buffer<tensor<8x[[M]]x2048xbf16>
  // CHECK-NEXT: ds.call matmul
  // CHECK: ds.view %[[Y]] offset [[ALL]]
  // CHECK-NEXT: ds.view %arg2 offset [[STEP]] :
  // CHECK-NEXT: ds.communicate reduce_scatter
  // CHECK: return
  func.func @one_sample(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %r: !ds.buffer<tensor<512x2048xbf16>, [2048, 1], device> {ds.input = "r"}, %b: !b {ds.input = "b"}) {
    %y = ds.alloc activations : !y
    ds.call matmul(%x, %w, %y, %b) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y, !b
    ds.communicate reduce_scatter ins(%y) outs(%r) reduce sum along tp on exchange : (!y) -> !ds.buffer<tensor<512x2048xbf16>, [2048, 1], device>
    return
  }

  // What else reads the rows of one sample has them in their order.
  // CHECK-LABEL: @one_sample_is_read
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @one_sample_is_read(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %r: !ds.buffer<tensor<512x2048xbf16>, [2048, 1], device> {ds.input = "r"}, %z: !y {ds.input = "z"}) {
    %y = ds.alloc activations : !y
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y
    ds.communicate reduce_scatter ins(%y) outs(%r) reduce sum along tp on exchange : (!y) -> !ds.buffer<tensor<512x2048xbf16>, [2048, 1], device>
    ds.call copy(%y, %z) writes [1] params [] on compute : !y, !y
    return
  }

  // Ranks' parts that something else reads as well stay packed.
  // CHECK-LABEL: @packed_is_read
  // CHECK-COUNT-1: ds.call matmul
  // CHECK: ds.call copy
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @packed_is_read(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !y {ds.input = "y"}, %r: !rows {ds.input = "r"}, %z: !byrank {ds.input = "z"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !y
    %front = ds.view %y offset 0 : !y -> !ranksinfront
    %packed = ds.alloc activations : !byrank
    ds.call copy(%front, %packed) writes [1] params [] on compute : !ranksinfront, !byrank
    ds.communicate reduce_scatter ins(%packed) outs(%r) reduce sum along tp on exchange : (!byrank) -> !rows
    ds.call copy(%packed, %z) writes [1] params [] on compute : !byrank, !byrank
    return
  }

  // E3: each sample is gathered to where both copies of it lay. The gradient of a weight, which reads all rows, lets the
  // product pass that can be cut.
  // CHECK-LABEL: @gathered_rows
  // CHECK: %[[R0:.*]] = ds.view %arg0 offset 0 : {{.*}} -> !ds.buffer<tensor<524288xbf16>, [1], device>
  // CHECK: %[[ALL:.*]] = ds.alloc
  // CHECK-NOT: ds.alloc
  // CHECK: %[[G0:.*]] = ds.view %[[ALL]] offset 0 : {{.*}} -> !ds.buffer<tensor<4194304xbf16>, [1], device>
  // CHECK: ds.communicate all_gather ins(%[[R0]]) outs(%[[G0]])
  // CHECK: %[[R1:.*]] = ds.view %arg0 offset 524288
  // CHECK: %[[G1:.*]] = ds.view %[[ALL]] offset 4194304
  // CHECK: ds.communicate all_gather ins(%[[R1]]) outs(%[[G1]])
  // CHECK: %[[X0:.*]] = ds.view %[[ALL]] offset 0 : {{.*}} -> !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device>
  // CHECK: ds.call matmul(%[[X0]], %arg1, %{{.*}}) writes [2] params [0, 0, 0, 0]
  // CHECK: %[[X1:.*]] = ds.view %[[ALL]] offset 4194304 : {{.*}} -> !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device>
  // CHECK: ds.call matmul(%[[X1]], %arg1, %{{.*}}) writes [2] params [0, 0, 0, 0]
  // CHECK-NEXT: %[[X:.*]] = ds.view %[[ALL]] offset 0 : {{.*}} -> !ds.buffer<tensor<4096x2048xbf16>, [2048, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %arg3, %arg4) writes [2] params [1, 0, 0, 0]
  // CHECK-NOT: ds.call
  // CHECK: return
  func.func @gathered_rows(%r: !rows {ds.input = "r"}, %w: !w {ds.input = "w"}, %z: !x {ds.input = "z"}, %a: !x {ds.input = "a"}, %g: !w {ds.input = "g"}) {
    %all = ds.alloc communication : !byrank
    ds.communicate all_gather ins(%r) outs(%all) along tp on exchange : (!rows) -> !byrank
    %front = ds.view %all offset 0 : !byrank -> !samplesinfront
    %one = ds.alloc activations : !bysample
    ds.call copy(%front, %one) writes [1] params [] on compute : !samplesinfront, !bysample
    %x = ds.view %one offset 0 : !bysample -> !y
    ds.call matmul(%x, %a, %g) writes [2] params [1, 0, 0, 0] on compute : !y, !x, !w
    %two = ds.alloc activations : !bysample
    ds.call copy(%front, %two) writes [1] params [] on compute : !samplesinfront, !bysample
    %x2 = ds.view %two offset 0 : !bysample -> !y
    ds.call matmul(%x2, %w, %z) writes [2] params [0, 0, 0, 0] on compute : !y, !w, !x
    return
  }

  // A copy that is changed is needed.
  // CHECK-LABEL: @copy_is_changed
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @copy_is_changed(%r: !rows {ds.input = "r"}, %w: !w {ds.input = "w"}, %z: !x {ds.input = "z"}) {
    %all = ds.alloc communication : !byrank
    ds.communicate all_gather ins(%r) outs(%all) along tp on exchange : (!rows) -> !byrank
    %front = ds.view %all offset 0 : !byrank -> !samplesinfront
    %one = ds.alloc activations : !bysample
    ds.call copy(%front, %one) writes [1] params [] on compute : !samplesinfront, !bysample
    %x = ds.view %one offset 0 : !bysample -> !y
    ds.call matmul(%x, %w, %z) writes [2] params [0, 0, 0, 0] on compute : !y, !w, !x
    ds.call fill(%one) writes [0] params [0.0] on compute : !bysample
    return
  }

  // A product that reads what stands before it cannot pass.
  // CHECK-LABEL: @cannot_pass
  // CHECK-COUNT-1: ds.communicate
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @cannot_pass(%r: !rows {ds.input = "r"}, %z: !ds.buffer<tensor<4096x2048xbf16>, [2048, 1], device> {ds.input = "z"}, %a: !y {ds.input = "a"}, %g: !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device> {ds.input = "g"}) {
    %all = ds.alloc communication : !byrank
    ds.communicate all_gather ins(%r) outs(%all) along tp on exchange : (!rows) -> !byrank
    %front = ds.view %all offset 0 : !byrank -> !samplesinfront
    %one = ds.alloc activations : !bysample
    ds.call copy(%front, %one) writes [1] params [] on compute : !samplesinfront, !bysample
    %x = ds.view %one offset 0 : !bysample -> !y
    ds.call matmul(%x, %a, %g) writes [2] params [1, 0, 0, 0] on compute : !y, !y, !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device>
    ds.call matmul(%x, %g, %z) writes [2] params [0, 0, 0, 0] on compute : !y, !ds.buffer<tensor<2048x2048xbf16>, [2048, 1], device>, !y
    return
  }
}
