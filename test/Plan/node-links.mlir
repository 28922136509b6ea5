// What collectives take on a cluster of nodes of two ranks, in the simulation of a planned step: those inside a node know the node's link
// alone, those between nodes the network as well, whatever stream they are on. Streams run one after the other here: they share the links.
// RUN: sed -e 's/"nodes": 1/"nodes": 2/' -e 's/"devices_per_node": 64/"devices_per_node": 2/' -e '$d' %root/lib/Config/clusters/cpu.json > %t.base
// RUN: (cat %t.base && echo ', "between": {"latency_seconds": 1e-3, "port_bytes_per_second": 1e8, "ports_per_node": 1}}') > %t.json
// RUN: (cat %t.base && echo ', "between": {"latency_seconds": 4e-3, "port_bytes_per_second": 1e8, "ports_per_node": 1}}') > %t.slow.json
// RUN: sed -e 's/"latency_seconds": 60e-6/"latency_seconds": 260e-6/' %t.json > %t.inside.json
// RUN: for link in json slow.json inside.json; do ds-opt %s --emit=plan --cluster %t.$link --trace %t.$link.trace -o %t.txt || exit 1; done
// RUN: %python %S/Inputs/check_links.py %t.json.trace %t.slow.json.trace %t.inside.json.trace | FileCheck %s
// The first on each stream is along dp.local, the second along dp.node or dp.
// CHECK:      exchange: network +0 us, node +{{[1-9][0-9]+}} us
// CHECK-NEXT: exchange: network +{{[1-9][0-9]+}} us, node +0 us
// CHECK-NEXT: gather: network +0 us, node +{{[1-9][0-9]+}} us
// CHECK-NEXT: gather: network +{{[1-9][0-9]+}} us, node +{{[1-9][0-9]+}} us
// CHECK-NEXT: transfer: network +0 us, node +{{[1-9][0-9]+}} us
// CHECK-NEXT: transfer: network +{{[1-9][0-9]+}} us, node +0 us

!part = !ds.buffer<tensor<1024xf32>, [1], device>
!half = !ds.buffer<tensor<2048xf32>, [1], device>
!whole = !ds.buffer<tensor<4096xf32>, [1], device>

module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.mesh @mesh axes [dp.node = 2, dp.local = 2] samples dp
  ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1024xf32>
  func.func @last(%p: !part {ds.state = @p}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %near = ds.alloc activations : !part
    ds.call fill(%near) writes [0] params [0.0 : f64] on compute : !part
    %other = ds.alloc activations : !part
    ds.call fill(%other) writes [0] params [0.0 : f64] on compute : !part
    ds.record 0 on compute
    ds.wait 0 on exchange
    %half = ds.alloc communication : !half
    %whole = ds.alloc communication : !whole
    ds.communicate all_reduce ins(%near) outs(%near) reduce sum along dp.local number 0 on exchange : (!part) -> !part
    ds.communicate all_reduce ins(%near) outs(%near) reduce sum along dp.node number 1 on exchange : (!part) -> !part
    ds.record 1 on exchange
    ds.wait 1 on gather
    ds.communicate all_gather ins(%p) outs(%half) along dp.local carries parameter number 2 on gather : (!part) -> !half
    ds.communicate all_gather ins(%p) outs(%whole) along dp carries parameter number 3 on gather : (!part) -> !whole
    ds.record 2 on gather
    ds.wait 2 on transfer
    ds.communicate broadcast ins(%other) outs(%other) along dp.local carries transfer number 4 on transfer : (!part) -> !part
    ds.communicate broadcast ins(%other) outs(%other) along dp.node carries transfer number 5 on transfer : (!part) -> !part
    ds.record 3 on transfer
    ds.wait 3 on compute
    return
  }
}
