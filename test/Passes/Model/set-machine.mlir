// What options leave open stays as it was.
// RUN: ds-opt %s --ds-set-machine="threads=4 memory=1000" | FileCheck %s
// RUN: ds-opt %s --ds-set-machine="cluster=h100-80g attention-bytes=0" | FileCheck %s --check-prefix=CLUSTER
// RUN: not ds-opt %s --ds-set-machine=cluster=nowhere 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not ds-opt %s --ds-set-machine=threads=0 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", threads = 4, memory = {device = 1000, host = 5}>}
// CLUSTER: #ds.machine<target = "cuda:sm_90", cluster = "h100-80g", threads = 2, memory = {host = 5}, attention_bytes = 0>
// NOWHERE: error: ds.machine expects a cluster that can be read, but got "nowhere":
// NONE: error: ds.machine expects at least 1 for threads, but got 0
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", threads = 2, memory = {host = 5}>} {
}
