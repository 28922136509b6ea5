// RUN: ds-opt %s --verify-roundtrip | FileCheck %s
// RUN: ds-opt %s --canonicalize --cse | FileCheck %s --check-prefix=KEPT

// What ranks do together on buffers, as the descriptions show it.

!part = !ds.buffer<tensor<512xf32>, [1], device>
!whole = !ds.buffer<tensor<2048xf32>, [1], device>
!staging = !ds.buffer<tensor<64xi8>, [1], device>

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

// CHECK-LABEL: @collectives
// KEPT-LABEL: @collectives
// KEPT-COUNT-7: ds.communicate
func.func @collectives(%a: !part, %b: !whole, %s: !staging) {
  // CHECK: ds.communicate all_gather ins(%{{.*}}) outs(%{{.*}}) along dp carries parameter on gather : (!ds.buffer<tensor<512xf32>, [1], device>) -> !ds.buffer<tensor<2048xf32>, [1], device>
  ds.communicate all_gather ins(%a) outs(%b) along dp carries parameter on gather : (!part) -> !whole
  // CHECK: ds.communicate reduce_scatter ins(%{{.*}}) outs(%{{.*}}) reduce sum along dp number 1 workspace(%{{.*}} : !ds.buffer<tensor<64xi8>, [1], device>) on reduce :
  ds.communicate reduce_scatter ins(%b) outs(%a) reduce sum along dp number 1 workspace(%s : !staging) on reduce : (!whole) -> !part
  // CHECK: ds.communicate all_reduce ins(%{{.*}}) outs(%{{.*}}) reduce max along tp on reduce :
  ds.communicate all_reduce ins(%b) outs(%b) reduce max along tp on reduce : (!whole) -> !whole
  // CHECK: ds.communicate broadcast ins(%{{.*}}) outs(%{{.*}}) along dp on gather {peer = 2 : i64} :
  ds.communicate broadcast ins(%b) outs(%b) along dp on gather {peer = 2 : i64} : (!whole) -> !whole
  // CHECK: ds.communicate all_to_all ins(%{{.*}}) outs(%{{.*}}) along sp on gather :
  ds.communicate all_to_all ins(%b) outs(%b) along sp on gather : (!whole) -> !whole
  // CHECK: ds.communicate send ins(%{{.*}}) outs() along pp on gather :
  ds.communicate send ins(%a) outs() along pp on gather : (!part) -> ()
  // CHECK: ds.communicate recv ins() outs(%{{.*}}) along pp on gather :
  ds.communicate recv ins() outs(%a) along pp on gather : () -> !part
  return
}

// CHECK-LABEL: @events
func.func @events() {
  // CHECK: ds.record 3 on compute
  ds.record 3 on compute
  // CHECK: ds.wait 3 on gather
  ds.wait 3 on gather
  return
}

// CHECK-LABEL: @own_part
func.func @own_part(%b: !whole) -> !part {
  // CHECK: ds.view %{{.*}} offset 0 shifts [dp = 512] : !ds.buffer<tensor<2048xf32>, [1], device> -> !ds.buffer<tensor<512xf32>, [1], device>
  %v = ds.view %b offset 0 shifts [dp = 512] : !whole -> !part
  return %v : !part
}
