// RUN: ds-opt %s --ds-offload-states | FileCheck %s
// RUN: sed 's/5.0e-01/1.0/; s/parameters = false/parameters = true/' %s | ds-opt --ds-offload-states - | FileCheck %s --check-prefix=ALL
// RUN: sed 's/5.0e-01/1.0/; s/parameters = false/parameters = true, optimizer_on_nvme = true, parameters_on_nvme = true, max_in_cpu = 65/' %s | ds-opt --ds-offload-states - | FileCheck %s --check-prefix=NVME
// RUN: sed 's/parameters = false/parameters = false, max_in_cpu = -1/' %s | not ds-opt --ds-offload-states - 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed 's/parameters = false/parameters = false, optimizer_on_nvme = true, speculate = true/' %s | not ds-opt --ds-offload-states - 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: ds.training expects offload.speculate with states on the host, but got them on NVMe
// WRONG: error: ds.training expects at least 0 elements for offload.max_in_cpu, but got -1

// In storage are moments and parameters, but for gradients, and but for the first parameters that have 65 elements at most:
// 40 + 24 are 64, and with @b there would be 72.
// NVME: {of = optimizer_place, elements = 72, of_elements = 72, space = nvme}, {of = parameter_place, elements = 64, space = host}, {of = parameter_place, elements = 8, space = nvme}]

// Half of 40 + 24 + 8 = 72 elements are 36: @w is too large, @v and @b are not. All that belongs to one has one home.
// CHECK: ds.decisions = #ds.decisions<choices = [{of = optimizer_place, elements = 32, of_elements = 72, space = host}]>
// ALL: [{of = optimizer_place, elements = 72, of_elements = 72, space = host}, {of = parameter_place, elements = 72, space = host}]
module attributes {ds.phase = #ds.phase<sharded>, ds.training = #ds.training<offload = {optimizer = 5.0e-01, parameters = false}>} {
  // CHECK: ds.state @w {{.*}} home (device)
  // ALL: ds.state @w {{.*}} home (host)
  // NVME: ds.state @w {{.*}} home (host)
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<40xf32>
  // CHECK: ds.state @v {{.*}} home (device)
  // NVME: ds.state @v {{.*}} home (host)
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24xf32>
  // CHECK: ds.state @b {{.*}} home (device)
  // NVME: ds.state @b {{.*}} home (nvme)
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // CHECK: ds.state @w.exp_avg {{.*}} home (device)
  // ALL: ds.state @w.exp_avg {{.*}} home (host)
  // NVME: ds.state @w.exp_avg {{.*}} home (nvme)
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<40xf32>
  // CHECK: ds.state @v.exp_avg {{.*}} home (host)
  // NVME: ds.state @v.exp_avg {{.*}} home (nvme)
  ds.state @v.exp_avg role(moment) slot("exp_avg") owner(@v) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24xf32>
  // CHECK: ds.state @v.grad {{.*}} home (host)
  // NVME: ds.state @v.grad {{.*}} home (host)
  ds.state @v.grad role(gradient) slot("grad") owner(@v) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24xf32>
  // CHECK: ds.state @b.exp_avg {{.*}} home (host)
  // NVME: ds.state @b.exp_avg {{.*}} home (nvme)
  ds.state @b.exp_avg role(moment) slot("exp_avg") owner(@b) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // Scalars stay: the host reads them after a step.
  // ALL: ds.state @lr {{.*}} home (device)
  // NVME: ds.state @lr {{.*}} home (device)
  ds.state @lr role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
}
