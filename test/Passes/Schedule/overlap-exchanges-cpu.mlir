// RUN: sed 's/ASKED/tp_overlap_comm = false/' %s | ds-opt - --ds-overlap-exchanges | FileCheck %s
// RUN: sed 's/ASKED/tp_overlap_comm = true/' %s | ds-opt - --ds-overlap-exchanges | FileCheck %s --check-prefix=ASKED

// The CPU's library adds in another order where a product has other rows: what could be cut is made in the parts of a cut.
!x = !ds.buffer<tensor<128x32xf32>, [32, 1], device>
!odd = !ds.buffer<tensor<192x32xf32>, [32, 1], device>
!w = !ds.buffer<tensor<32x32xf32>, [32, 1], device>
!u = !ds.buffer<tensor<16x32xf32>, [32, 1], device>
!z = !ds.buffer<tensor<128x16xf32>, [16, 1], device>
!n = !ds.buffer<tensor<4096x32xbf16>, [32, 1], device>
!m = !ds.buffer<tensor<3072x32xbf16>, [32, 1], device>
!v = !ds.buffer<tensor<32x32xbf16>, [32, 1], device>

module attributes {ds.machine = #ds.machine<target = "cpu">, ds.training = #ds.training<tensor_parallel = {ASKED}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp

  // 2 x 64 rows: E4: not cut it is made in these two parts, and so is the product of its sizes that nobody exchanges, but not
  // one of 16 columns.
  // CHECK-LABEL: @in_parts
  // CHECK-NEXT: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0, 0, 64, 0, 0] on compute
  // CHECK-NEXT: ds.communicate all_reduce
  // CHECK-NEXT: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0, 0, 64, 0, 0] on compute
  // CHECK-NEXT: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0] on compute
  // CHECK-NEXT: return
  //
  // ASKED-LABEL: @in_parts
  // ASKED-COUNT-2: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0] on compute {{.*}}tensor<64x32xf32>
  // ASKED: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0, 0, 64, 0, 0] on compute {{.*}}tensor<128x32xf32>
  func.func @in_parts(%x: !x {ds.input = "x"}, %w: !w {ds.input = "w"}, %u: !u {ds.input = "u"}, %y: !x {ds.input = "y"}, %z: !z {ds.input = "z"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !x
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!x) -> !x
    ds.call matmul(%y, %w, %x) writes [2] params [0, 1, 0, 0] on compute : !x, !w, !x
    ds.call matmul(%x, %u, %z) writes [2] params [0, 1, 0, 0] on compute : !x, !u, !z
    return
  }

  // Halves of 192 rows are no whole 64 rows.
  // CHECK-LABEL: @no_parts
  // CHECK-NEXT: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0] on compute
  //
  // ASKED-LABEL: @no_parts
  // ASKED-COUNT-1: ds.call matmul
  // ASKED-NOT: ds.call matmul
  // ASKED: return
  func.func @no_parts(%x: !odd {ds.input = "x"}, %w: !w {ds.input = "w"}, %y: !odd {ds.input = "y"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !odd, !w, !odd
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!odd) -> !odd
    return
  }

  // 16 bits are widened in blocks of 1024 rows: 2 x 2048 rows have the blocks of 4096, 2 x 1536 not those of 3072.
  // CHECK-LABEL: @widened
  // CHECK: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0, 0, 2048, 0, 0] on compute
  // CHECK: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0] on compute
  //
  // ASKED-LABEL: @widened
  // ASKED-COUNT-2: ds.call matmul({{.*}}tensor<2048x32xbf16>
  // ASKED-COUNT-1: ds.call matmul({{.*}}tensor<3072x32xbf16>
  func.func @widened(%x: !n {ds.input = "x"}, %w: !v {ds.input = "w"}, %y: !n {ds.input = "y"}, %a: !m {ds.input = "a"}, %b: !m {ds.input = "b"}) {
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute : !n, !v, !n
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange : (!n) -> !n
    ds.call matmul(%a, %w, %b) writes [2] params [0, 1, 0, 0] on compute : !m, !v, !m
    ds.communicate all_reduce ins(%b) outs(%b) reduce sum along tp on exchange : (!m) -> !m
    return
  }
}
