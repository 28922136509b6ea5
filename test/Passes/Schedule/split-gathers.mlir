// RUN: sed 's/FIRST/"dp.node"/;s/MESH/dp.node = 2, dp.local = 2/' %s | ds-opt - --ds-split-gathers | FileCheck %s
// RUN: sed 's/FIRST/"dp.node"/;s/MESH/dp.node = 2, dp.local = 1, sp = 2/;s/along dp c/along (dp, sp) c/' %s | ds-opt - --ds-split-gathers | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/FIRST/"dp.node"/;s/MESH/dp.node = 1, dp.local = 4/' %s | ds-opt - --ds-split-gathers | FileCheck %s --check-prefix=SAME
// RUN: sed 's/FIRST/"dp.node"/;s/MESH/dp.node = 4, dp.local = 1/' %s | ds-opt - --ds-split-gathers | FileCheck %s --check-prefix=SAME
// RUN: sed 's/\["FIRST"\]//;s/, gather_first_axes = \[FIRST\]//;s/MESH/dp.node = 2, dp.local = 2/' %s | ds-opt - --ds-split-gathers | FileCheck %s --check-prefix=SAME

!part = !ds.buffer<tensor<32xf32>, [1], device>
!whole = !ds.buffer<tensor<128xf32>, [1], device>

module attributes {ds.phase = #ds.phase<scheduled>,
                   ds.training = #ds.training<zero_optimization = {stage = 3, gather_first_axes = [FIRST]}>} {
  ds.mesh @mesh axes [MESH] samples dp
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>
  ds.state @y role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

  // Ranks 0 to 3 have a, b, c and d. Between nodes: a and c on ranks 0 and 2; the first part gathered within gives a b, the second c d.
  // CHECK-LABEL: func.func @parameter
  // CHECK: %[[WHOLE:.*]] = ds.alloc communication :
  // CHECK: %[[JOINED:.*]] = ds.alloc communication {{.*}}: !ds.buffer<tensor<64xf32>, [1], device>
  // CHECK-NEXT: ds.communicate all_gather ins(%{{.*}}) outs(%[[JOINED]]) along dp.node carries parameter on gather {ds.work = #ds.work<forward>}
  // CHECK-NEXT: %[[FROM:.*]] = ds.view %[[JOINED]] offset 0 : {{.*}} -> !ds.buffer<tensor<32xf32>, [1], device>
  // CHECK-NEXT: %[[TO:.*]] = ds.view %[[WHOLE]] offset 0 : {{.*}} -> !ds.buffer<tensor<64xf32>, [1], device>
  // CHECK-NEXT: ds.communicate all_gather ins(%[[FROM]]) outs(%[[TO]]) along dp.local carries parameter on gather {ds.work = #ds.work<forward>}
  // CHECK-NEXT: %[[FROM2:.*]] = ds.view %[[JOINED]] offset 32
  // CHECK-NEXT: %[[TO2:.*]] = ds.view %[[WHOLE]] offset 64
  // CHECK-NEXT: ds.communicate all_gather ins(%[[FROM2]]) outs(%[[TO2]]) along dp.local
  // CHECK-NEXT: ds.call copy
  // OTHER: ds.communicate all_gather {{.*}} along dp.node
  // OTHER: ds.communicate all_gather {{.*}} along {{.*}}sp
  // SAME-LABEL: func.func @parameter
  // SAME: ds.communicate all_gather
  // SAME-NOT: ds.communicate
  // SAME: return
  func.func @parameter(%w: !part {ds.state = @w}, %y: !whole {ds.state = @y}) attributes {ds.segment = #ds.segment<forward>} {
    %f = ds.alloc communication : !whole
    ds.communicate all_gather ins(%w) outs(%f) along dp carries parameter on gather {ds.work = #ds.work<forward>} : (!part) -> !whole
    ds.call copy(%f, %y) writes [1] params [] on compute {ds.work = #ds.work<forward>} : !whole, !whole
    return
  }

  // What is gathered into a state's place is no parameter that layers read, and what carries something else no parameter.
  // CHECK-LABEL: func.func @others
  // CHECK-COUNT-2: ds.communicate all_gather {{.*}} along dp carries
  // CHECK-NOT: ds.communicate
  func.func @others(%w: !part {ds.state = @w}, %v: !whole {ds.state = @v}, %y: !whole {ds.state = @y}) attributes {ds.segment = #ds.segment<evaluation>} {
    %f = ds.alloc communication : !whole
    ds.communicate all_gather ins(%w) outs(%v) along dp carries parameter on gather : (!part) -> !whole
    ds.communicate all_gather ins(%w) outs(%f) along dp carries bucket on reduce : (!part) -> !whole
    ds.call copy(%f, %y) writes [1] params [] on compute : !whole, !whole
    return
  }
}
