// What stands on modules is typed: what has its default is not printed, keys may come in any order.
// RUN: ds-opt %s --split-input-file --verify-roundtrip | FileCheck %s

// CHECK: module attributes {ds.training = #ds.training<>}
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 1, reduce_op = mean, no_decay = [], optimizer = {type = adam, lr = 1.0e-3 : f64}, offload = {}>} {
}

// -----

// Every kind of field: words, numbers, truth values, what may be absent, lists, and structs.
// CHECK: #ds.training<gradient_clipping = 5.000000e-01, reduce_op = sum, communication_data_type = bf16, loss_normalization = tokens, no_decay = ["bias$", "a\22b"],
// CHECK-SAME: optimizer = {type = adagrad, eps = 1.000000e-08}, precision = {compute = f16}, zero_optimization = {stage = 1, reduce_each_micro_step = false}, recompute = {layers = [1, 3]}>
module attributes {ds.training = #ds.training<zero_optimization = {reduce_each_micro_step = false, stage = 1}, reduce_op = sum, communication_data_type = bf16,
    loss_normalization = tokens, gradient_clipping = 0.5, no_decay = ["bias$", "a\22b"], optimizer = {type = adagrad, eps = 1.0e-8, lr = 1.0e-2}, precision = {compute = f16},
    recompute = {layers = [1, 3]}>} {
}

// -----

// CHECK: #ds.training<tensor_parallel = {sequence_parallel = true, tp_overlap_comm = false, layer_specs = [{patterns = ["qkv"], shape = {{\[\[}}768, 256, 256], [-1]], partition_dim = 0},
// CHECK-SAME: {patterns = ["o_proj", "down"], partition_type = row, model_types = ["llama"]}, {partition_type = skip}]}>
module attributes {ds.training = #ds.training<tensor_parallel = {tp_overlap_comm = false, sequence_parallel = true, layer_specs = [
    {shape = [[768, 256, 256], [-1]], partition_type = column, patterns = ["qkv"], partition_dim = 0}, {patterns = ["o_proj", "down"], partition_type = row, model_types = ["llama"]},
    {partition_type = skip}]}>} {
}

// -----

// CHECK: module attributes {ds.indices = [#ds.indices<"tokens" below 50257>, #ds.indices<"labels" below 50257 ignore -100 targets[1, 7]>]}
module attributes {ds.indices = [#ds.indices<"tokens" below 50257>, #ds.indices<"labels" below 50257 ignore -100 targets[1, 7]>]} {
}

// -----

// CHECK: #ds.decisions<loss_split = {chunks = 4, rows = 512, outcome = {saved_bytes = -8}},
// CHECK-SAME: choices = [{of = reduce_bucket}, {of = sub_group}, {of = parameter_place, elements = 8, space = nvme}],
// CHECK-SAME: residency = {again = [{what = "gelu", values = 3}], largest = [{what = "add", layer = "h.0", bytes = 64, next = {way = {by = host}, more_seconds = 0x7FF0000000000000 : f64}}, {way = {by = pieces, size = 2}}], fits = true},
// CHECK-SAME: gathers = [{function = "first", kept = ["w"], again = [{reason = choice, states = ["v"]}]}]>
module attributes {ds.decisions = #ds.decisions<loss_split = {chunks = 4, rows = 512, outcome = {saved_bytes = -8}},
    choices = [{of = reduce_bucket}, {of = sub_group}, {elements = 8, of = parameter_place, space = nvme}],
    residency = {again = [{what = "gelu", values = 3}], largest = [{what = "add", layer = "h.0", bytes = 64, next = {way = {by = host}, more_seconds = 0x7FF0000000000000 : f64}}, {way = {by = pieces, size = 2}}], fits = true},
    gathers = [{function = "first", kept = ["w"], again = [{reason = choice, states = ["v"]}]}]>} {
}

// -----

// CHECK: module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", node_local_saves = true>}
module attributes {ds.machine = #ds.machine<node_local_saves = true, target = "cuda:sm_90">} {
}

// -----

// CHECK: module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", fast_attention = true>}
module attributes {ds.machine = #ds.machine<fast_attention = true, target = "cuda:sm_90">} {
}

// -----

// CHECK: module attributes {ds.machine = #ds.machine<cluster = "h100-80g", threads = 8, memory = {device = 1000, host = 2000}, attention_bytes = 0>}
module attributes {ds.machine = #ds.machine<threads = 8, target = "cpu", memory = {host = 2000, device = 1000}, cluster = "h100-80g", attention_bytes = 0>} {
}

// -----

// CHECK: #ds.decisions<residency = {fits = true, group_values = 4, loss = {rows = 2, pieces = [{rows = 2, chunks = 3}]}}>
module attributes {ds.decisions = #ds.decisions<residency = {loss = {pieces = [{chunks = 3, rows = 2}], rows = 2}, group_values = 4, fits = true}>} {
}

// -----

// What ops and results say beside their own attributes.
// CHECK: -> (tensor<f32> {ds.state = @s}, tensor<f32> {ds.state = #ds.gradient<@w>})
func.func @said(%x: tensor<f32>) -> (tensor<f32> {ds.state = @s}, tensor<f32> {ds.state = #ds.gradient<@w>}) {
  // CHECK: {ds.layer = #ds.layer<"wte">}
  %a = ds.neg %x {ds.layer = #ds.layer<"wte">} : tensor<f32>
  // CHECK: {ds.layer = #ds.layer<"h", 3>}
  %b = ds.neg %a {ds.layer = #ds.layer<"h", 3>} : tensor<f32>
  // CHECK: {ds.layer = #ds.layer<"", 3, "attn.w">}
  %c = ds.neg %b {ds.layer = #ds.layer<"", 3, "attn.w">} : tensor<f32>
  return %b, %c : tensor<f32>, tensor<f32>
}

// -----

// CHECK: #ds.decisions<shared = {ranks = 4, parameters = [{names = "h.*.w", count = 2, bytes = 64, dim = 0}, {names = "b", count = 1, reason = cost}], whole = [{what = "matmul", count = 1, reason = indivisible}], exchanges = [{maker = "matmul", layers = "h.*", reader = "add", forward = true, count = 2, bytes = 96}]}>
module attributes {ds.decisions = #ds.decisions<shared = {exchanges = [{kind = all_reduce, bytes = 96, maker = "matmul", layers = "h.*", reader = "add", forward = true, count = 2}],
    ranks = 4, parameters = [{names = "h.*.w", count = 2, bytes = 64, dim = 0, outer = 1}, {names = "b", count = 1, reason = cost}], whole = [{what = "matmul", count = 1, reason = indivisible}]}>} {
}
