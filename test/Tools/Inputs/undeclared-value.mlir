// Size: one planned module as a tool printed it.
module attributes {ds.decisions = #ds.decisions<choices = [{of = reduce_each_micro_step, bytes = 256}]>, ds.phase = #ds.phase<planned>, ds.training = #ds.training<gradient_accumulation_steps = 2, gradient_clipping = 1.000000e+00, loss_chunks = 0, loss_scale = {consecutive_hysteresis = false, dynamic = false, hysteresis = 2, initial = 1.000000e+00, minimum = 1.000000e+00, scale = false, skip = false, window = 1000}, optimizer = {type = adam, adam_w_mode = true, beta1 = 9.000000e-01, beta2 = 0.99899999999999999, bias_correction = true, dampening = 0.000000e+00, eps = 1.000000e-08, eps_inside_sqrt = false, initial_accumulator_value = 0.000000e+00, lr = 1.000000e-02, lr_decay = 0.000000e+00, max_coeff = 1.000000e+01, min_coeff = 1.000000e-02, momentum = 0.000000e+00, nesterov = false, weight_decay = 0.000000e+00}, precision = {autocast = false, buffer = f32, compute = f32, convert_buffers = false, gradient = f32, master = f32, moment = f32}, reduce_op = mean, scheduler = {cos_min_ratio = 1.000000e-04, cycle_first_stair_count = 0, cycle_first_step_size = 2000, cycle_max_lr = 0.000000e+00, cycle_max_mom = 9.000000e-01, cycle_min_lr = 0.000000e+00, cycle_min_mom = 8.000000e-01, cycle_momentum = false, cycle_second_stair_count = 0, cycle_second_step_size = 2000, decay_lr_rate = 0.000000e+00, decay_mom_rate = 0.000000e+00, decay_step_size = 0, lr_range_test_min_lr = 1.000000e-03, lr_range_test_staircase = false, lr_range_test_step_rate = 1.000000e+00, lr_range_test_step_size = 2000, total_num_steps = 0, type = constant, warmup_log = true, warmup_max_lr = 1.000000e-03, warmup_min_lr = 0.000000e+00, warmup_min_ratio = 0.000000e+00, warmup_num_steps = 1000}, zero_optimization = {allgather_bucket_size = 500000000, reduce_bucket_size = 500000000, stage = 2, stage3_model_persistence_threshold = 9223372036854775807, stage3_param_persistence_threshold = 100000, sub_group_size = 1000000000}>} {
  ds.arena device bytes 3456 lower_bound 3456
  ds.mesh @mesh axes [dp = 2]
  ds.state @rng role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 0 : i64} : tensor<2xi64>
  ds.state @w role (parameter) trainable init(#ds.init<normal, 0.000000e+00, 5.000000e-01>) home (device) : tensor<8x8xf32>
  ds.state @g role (parameter) trainable init(#ds.init<constant, 1.000000e+00, 0.000000e+00>) home (device) : tensor<8xf32>
  ds.state @loss role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 64 : i64} : tensor<f32>
  ds.state @step role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 128 : i64} : tensor<i64>
  ds.state @lr role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 192 : i64} : tensor<f64>
  ds.state @grad_norm role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 256 : i64} : tensor<f32>
  ds.state @eval_loss role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 320 : i64} : tensor<f32>
  ds.bucket @bucket_0 members [@g] offsets [0] elements 64
  ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 384 : i64} : tensor<64xf32>
  ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 640 : i64} : tensor<64xf32>
  ds.state @bucket_0.exp_avg role (moment) slot("exp_avg") bucket(@bucket_0) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 768 : i64} : tensor<64xf32>
  ds.state @bucket_0.exp_avg_sq role (moment) slot("exp_avg_sq") bucket(@bucket_0) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 896 : i64} : tensor<64xf32>
  ds.bucket @bucket_1 members [@w] offsets [0] elements 64
  ds.state @bucket_1.parameter role (parameter) bucket(@bucket_1) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 1024 : i64} : tensor<64xf32>
  ds.state @bucket_1.grad role (gradient) slot("grad") bucket(@bucket_1) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 1280 : i64} : tensor<64xf32>
  ds.state @bucket_1.exp_avg role (moment) slot("exp_avg") bucket(@bucket_1) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 1408 : i64} : tensor<64xf32>
  ds.state @bucket_1.exp_avg_sq role (moment) slot("exp_avg_sq") bucket(@bucket_1) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) {offset = 1536 : i64} : tensor<64xf32>
  func.func @first(%arg0: !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> {ds.input = "x", ds.offset = 1664 : i64}, %arg1: !ds.buffer<tensor<2xi64>, [1], device> {ds.state = @rng}, %arg2: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @bucket_0.parameter}, %arg3: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @bucket_1.parameter}, %arg4: !ds.buffer<tensor<f32>, [], device> {ds.state = @loss}, %arg5: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_0.grad}, %arg6: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_1.grad}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %0 = ds.view %arg2 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    %1 = ds.alloc activations offset 2176 : !ds.buffer<tensor<2x4xf32>, [4, 1], device>
    %2 = ds.alloc activations offset 2240 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_0 ins(%arg0, %0) outs(%1, %2) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> (!ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>)
    %3 = ds.view %arg3 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %4 = ds.view %2 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %6 = ds.view %5 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%4, %3, %6) writes [2] params [0, 1, 0, 1] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %7 = ds.alloc activations offset 2368 : !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_1 ins() outs(%7) on compute : () -> !ds.buffer<tensor<2xi64>, [1], device>
    %8 = ds.view %7 offset 0 shifts [dp = 1] : !ds.buffer<tensor<2xi64>, [1], device> -> !ds.buffer<tensor<i64>, [], device>
    %9 = ds.alloc activations offset 2240 : !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_2 ins(%8, %7, %arg1) outs(%9) extent 2 on compute : (!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2xi64>, [1], device>) -> !ds.buffer<tensor<2xi64>, [1], device>
    %10 = ds.alloc activations offset 2304 : !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_3 ins(%8, %arg1) outs(%10) on compute : (!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<2xi64>, [1], device>) -> !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_4 ins(%arg1) outs(%arg1) on compute : (!ds.buffer<tensor<2xi64>, [1], device>) -> !ds.buffer<tensor<2xi64>, [1], device>
    %11 = ds.alloc activations offset 2368 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_5 ins(%9, %5) outs(%11) on compute : (!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %12 = ds.view %11 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>
    %13 = ds.alloc activations offset 2240 : !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>
    %14 = ds.alloc activations offset 2880 : !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>
    %15 = ds.alloc activations offset 2624 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    ds.launch @kernel_6 ins(%12) outs(%13, %14, %15) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>) -> (!ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>)
    ds.launch @kernel_7 ins(%15) outs(%arg4) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>) -> !ds.buffer<tensor<f32>, [], device>
    %16 = ds.alloc activations offset 2560 : !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>
    %17 = ds.alloc activations offset 2624 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_8 ins(%10, %5) outs(%16, %17) on compute : (!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> (!ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>)
    %18 = ds.view %17 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>
    %19 = ds.alloc activations offset 2944 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    ds.launch @kernel_9 ins(%18, %13, %14) outs(%19) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>) -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    %20 = ds.view %19 offset 0 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device> -> !ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>
    %21 = ds.alloc activations offset 2240 : !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device>
    ds.launch @kernel_10 ins(%20) outs(%21) on compute : (!ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>) -> !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device>
    %22 = ds.alloc activations offset 2304 : !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device>
    ds.launch @kernel_11 ins(%20) outs(%22) on compute : (!ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>) -> !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device>
    %23 = ds.view %21 offset 0 : !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device> -> !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>
    %24 = ds.view %22 offset 0 : !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device> -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_12 ins(%16, %23, %24, %5) outs(%5) extent 64 on compute : (!ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %25 = ds.view %arg3 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %26 = ds.view %5 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %27 = ds.alloc activations offset 2304 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %28 = ds.view %27 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%26, %25, %28) writes [2] params [0, 0, 0, 0] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %29 = ds.alloc gradients offset 2560 : !ds.buffer<tensor<64xf32>, [1], device>
    %30 = ds.view %29 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @kernel_13 ins(%arg0, %1, %27) outs(%30) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    %31 = ds.view %arg2 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    %32 = ds.alloc activations offset 2304 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_14 ins(%arg0, %1, %31) outs(%32) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %33 = ds.view %5 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %34 = ds.view %32 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %35 = ds.alloc activations offset 2816 : !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%33, %34, %35) writes [2] params [1, 0, 0, 0] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %36 = ds.view %35 offset 0 : !ds.buffer<tensor<8x8xf32>, [8, 1], device> -> !ds.buffer<tensor<64xf32>, [1], device>
    ds.record 0 on compute
    ds.wait 0 on reduce
    %37 = ds.alloc workspace offset 1920 : !ds.buffer<tensor<256xi8>, [1], device>
    ds.communicate reduce_scatter ins(%36) outs(%arg6) reduce sum along dp carries bucket number 0 workspace(%37 : !ds.buffer<tensor<256xi8>, [1], device>) on reduce : (!ds.buffer<tensor<64xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    %38 = ds.view %29 offset 8 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<56xf32>, [1], device>
    ds.launch @kernel_15 ins() outs(%38) extent 56 on compute : () -> !ds.buffer<tensor<56xf32>, [1], device>
    ds.record 1 on compute
    ds.wait 1 on reduce
    %39 = ds.alloc workspace offset 2176 : !ds.buffer<tensor<256xi8>, [1], device>
    ds.communicate reduce_scatter ins(%29) outs(%arg5) reduce sum along dp carries bucket number 1 workspace(%39 : !ds.buffer<tensor<256xi8>, [1], device>) on reduce : (!ds.buffer<tensor<64xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    return
  }
  func.func @last(%arg0: !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> {ds.input = "x", ds.offset = 1664 : i64}, %arg1: !ds.buffer<tensor<2xi64>, [1], device> {ds.state = @rng}, %arg2: !ds.buffer<tensor<f32>, [], device> {ds.state = @loss}, %arg3: !ds.buffer<tensor<i64>, [], device> {ds.state = @step}, %arg4: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_0.grad}, %arg5: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_1.grad}, %arg6: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @bucket_0.parameter}, %arg7: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_0.exp_avg}, %arg8: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_0.exp_avg_sq}, %arg9: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @bucket_1.parameter}, %arg10: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_1.exp_avg}, %arg11: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @bucket_1.exp_avg_sq}, %arg12: !ds.buffer<tensor<f64>, [], device> {ds.state = @lr}, %arg13: !ds.buffer<tensor<f32>, [], device> {ds.state = @grad_norm}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @kernel_16 ins() outs(%arg12) on compute : () -> !ds.buffer<tensor<f64>, [], device>
    %0 = ds.view %arg6 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    %1 = ds.alloc activations offset 1920 : !ds.buffer<tensor<2x4xf32>, [4, 1], device>
    %2 = ds.alloc activations offset 1984 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_0 ins(%arg0, %0) outs(%1, %2) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> (!ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>)
    %3 = ds.view %arg9 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %4 = ds.view %2 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %5 = ds.alloc activations offset 2368 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %6 = ds.view %5 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%4, %3, %6) writes [2] params [0, 1, 0, 1] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %7 = ds.alloc activations offset 1984 : !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_1 ins() outs(%7) on compute : () -> !ds.buffer<tensor<2xi64>, [1], device>
    %8 = ds.view %7 offset 0 shifts [dp = 1] : !ds.buffer<tensor<2xi64>, [1], device> -> !ds.buffer<tensor<i64>, [], device>
    %9 = ds.alloc activations offset 2624 : !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_2 ins(%8, %7, %arg1) outs(%9) extent 2 on compute : (!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2xi64>, [1], device>) -> !ds.buffer<tensor<2xi64>, [1], device>
    %10 = ds.alloc activations offset 2048 : !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_3 ins(%8, %arg1) outs(%10) on compute : (!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<2xi64>, [1], device>) -> !ds.buffer<tensor<2xi64>, [1], device>
    ds.launch @kernel_4 ins(%arg1) outs(%arg1) on compute : (!ds.buffer<tensor<2xi64>, [1], device>) -> !ds.buffer<tensor<2xi64>, [1], device>
    %11 = ds.alloc activations offset 2112 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_5 ins(%9, %5) outs(%11) on compute : (!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %12 = ds.view %11 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>
    %13 = ds.alloc activations offset 2624 : !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>
    %14 = ds.alloc activations offset 1984 : !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>
    %15 = ds.alloc activations offset 2688 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    ds.launch @kernel_6 ins(%12) outs(%13, %14, %15) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>) -> (!ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>)
    %16 = ds.alloc activations offset 3072 : !ds.buffer<tensor<f32>, [], device>
    ds.launch @kernel_17 ins(%15, %arg2) outs(%16) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<f32>, [], device>
    ds.record 0 on compute
    ds.wait 0 on reduce
    %17 = ds.alloc workspace offset 3136 : !ds.buffer<tensor<8xi8>, [1], device>
    ds.communicate all_reduce ins(%16) outs(%16) reduce sum along dp carries statistic number 0 workspace(%17 : !ds.buffer<tensor<8xi8>, [1], device>) on reduce : (!ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<f32>, [], device>
    ds.record 3 on reduce
    %18 = ds.alloc activations offset 2688 : !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>
    %19 = ds.alloc activations offset 2112 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_8 ins(%10, %5) outs(%18, %19) on compute : (!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> (!ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>)
    %20 = ds.view %19 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>
    %21 = ds.alloc activations offset 2752 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    ds.launch @kernel_9 ins(%20, %13, %14) outs(%21) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>) -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    %22 = ds.view %21 offset 0 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device> -> !ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>
    %23 = ds.alloc activations offset 2624 : !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device>
    ds.launch @kernel_10 ins(%22) outs(%23) on compute : (!ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>) -> !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device>
    %24 = ds.alloc activations offset 1984 : !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device>
    ds.launch @kernel_11 ins(%22) outs(%24) on compute : (!ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>) -> !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device>
    %25 = ds.view %23 offset 0 : !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device> -> !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>
    %26 = ds.view %24 offset 0 : !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device> -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_12 ins(%18, %25, %26, %5) outs(%5) extent 64 on compute : (!ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %27 = ds.view %arg9 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %28 = ds.view %5 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %29 = ds.alloc activations offset 1984 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %30 = ds.view %29 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%28, %27, %30) writes [2] params [0, 0, 0, 0] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %31 = ds.alloc gradients offset 2816 : !ds.buffer<tensor<64xf32>, [1], device>
    %32 = ds.view %31 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @kernel_13 ins(%arg0, %1, %29) outs(%32) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    %33 = ds.view %arg6 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    %34 = ds.alloc activations offset 1984 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_14 ins(%arg0, %1, %33) outs(%34) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %35 = ds.view %5 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %36 = ds.view %34 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %37 = ds.alloc activations offset 3200 : !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%35, %36, %37) writes [2] params [1, 0, 0, 0] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %38 = ds.view %37 offset 0 : !ds.buffer<tensor<8x8xf32>, [8, 1], device> -> !ds.buffer<tensor<64xf32>, [1], device>
    %39 = ds.alloc gradients offset 2432 : !ds.buffer<tensor<32xf32>, [1], device>
module {
    ds.record 1 on compute
    ds.wait 1 on reduce
    %40 = ds.alloc workspace offset 2176 : !ds.buffer<tensor<256xi8>, [1], device>
    ds.communicate reduce_scatter ins(%38) outs(%39) reduce sum along dp carries bucket number 1 workspace(%40 : !ds.buffer<tensor<256xi8>, [1], device>) on reduce : (!ds.buffer<tensor<64xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    ds.record 4 on reduce
    %41 = ds.view %31 offset 8 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<56xf32>, [1], device>
    ds.launch @kernel_15 ins() outs(%41) extent 56 on compute : () -> !ds.buffer<tensor<56xf32>, [1], device>
    %42 = ds.alloc gradients offset 1920 : !ds.buffer<tensor<32xf32>, [1], device>
    ds.record 2 on compute
    ds.wait 2 on reduce
    %43 = ds.alloc workspace offset 2560 : !ds.buffer<tensor<256xi8>, [1], device>
    ds.communicate reduce_scatter ins(%31) outs(%42) reduce sum along dp carries bucket number 2 workspace(%43 : !ds.buffer<tensor<256xi8>, [1], device>) on reduce : (!ds.buffer<tensor<64xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    ds.record 5 on reduce
    %44 = ds.alloc activations offset 2048 : !ds.buffer<tensor<f32>, [], device>
    %45 = ds.alloc activations offset 2112 : !ds.buffer<tensor<f32>, [], device>
    ds.launch @kernel_21 ins(%arg3, %arg12) outs(%44, %45) on compute : (!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<f64>, [], device>) -> (!ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>)
    ds.launch @kernel_22 ins(%arg3) outs(%arg3) on compute : (!ds.buffer<tensor<i64>, [], device>) -> !ds.buffer<tensor<i64>, [], device>
    ds.wait 3 on compute
    ds.launch @kernel_18 ins(%16) outs(%arg2) on compute : (!ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<f32>, [], device>
    ds.wait 4 on compute
    ds.launch @kernel_19 ins(%arg5, %39) outs(%39) extent 32 on compute : (!ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    ds.wait 5 on compute
    ds.launch @kernel_19 ins(%arg4, %42) outs(%42) extent 32 on compute : (!ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    %46 = ds.alloc activations offset 2240 : !ds.buffer<tensor<f64>, [], device>
    %47 = ds.alloc workspace offset 2176 : !ds.buffer<tensor<8xi8>, [1], device>
    ds.call sum_of_squares(%42, %39, %46) writes [2] params [] workspace(%47 : !ds.buffer<tensor<8xi8>, [1], device>) on compute : !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<f64>, [], device>
    ds.record 6 on compute
    ds.wait 6 on reduce
    %48 = ds.alloc workspace offset 2176 : !ds.buffer<tensor<16xi8>, [1], device>
    ds.communicate all_reduce ins(%46) outs(%46) reduce sum along dp carries statistic number 3 workspace(%48 : !ds.buffer<tensor<16xi8>, [1], device>) on reduce : (!ds.buffer<tensor<f64>, [], device>) -> !ds.buffer<tensor<f64>, [], device>
    ds.record 7 on reduce
    %49 = ds.alloc activations offset 2176 : !ds.buffer<tensor<f32>, [], device>
    ds.wait 7 on compute
    ds.launch @kernel_20 ins(%46) outs(%arg13, %49) on compute : (!ds.buffer<tensor<f64>, [], device>) -> (!ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>)
    %50 = ds.view %arg9 offset 0 shifts [dp = 32] : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<32xf32>, [1], device>
    %51 = ds.view %arg9 offset 0 shifts [dp = 32] : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<32xf32>, [1], device>
    ds.launch @kernel_23 ins(%39, %49, %arg10, %arg11, %44, %45, %50) outs(%arg10, %arg11, %51) extent 32 on compute : (!ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<32xf32>, [1], device>) -> (!ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>)
    ds.record 8 on compute
    ds.wait 8 on gather
    ds.communicate all_gather ins(%51) outs(%arg9) along dp carries parameter number 4 on gather : (!ds.buffer<tensor<32xf32>, [1], device>) -> !ds.buffer<tensor<64xf32>, [1], device>
    %52 = ds.view %arg6 offset 0 shifts [dp = 32] : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<32xf32>, [1], device>
    %53 = ds.view %arg6 offset 0 shifts [dp = 32] : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<32xf32>, [1], device>
    ds.launch @kernel_23 ins(%42, %49, %arg7, %arg8, %44, %45, %52) outs(%arg7, %arg8, %53) extent 32 on compute : (!ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<32xf32>, [1], device>) -> (!ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], device>)
    ds.record 9 on compute
    ds.wait 9 on gather
    ds.communicate all_gather ins(%53) outs(%arg6) along dp carries parameter number 5 on gather : (!ds.buffer<tensor<32xf32>, [1], device>) -> !ds.buffer<tensor<64xf32>, [1], device>
    return
  }
  func.func @evaluate(%arg0: !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> {ds.input = "x", ds.offset = 1664 : i64}, %arg1: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @bucket_0.parameter}, %arg2: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @bucket_1.parameter}, %arg3: !ds.buffer<tensor<f32>, [], device> {ds.state = @eval_loss}) attributes {ds.segment = #ds.segment<evaluation>} {
    %0 = ds.view %arg1 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8xf32>, [1], device>
    %1 = ds.alloc activations offset 1920 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    ds.launch @kernel_24 ins(%arg0, %0) outs(%1) on compute : (!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %2 = ds.view %arg2 offset 0 : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %3 = ds.view %1 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %4 = ds.alloc activations offset 2176 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>
    %5 = ds.view %4 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    ds.call matmul(%3, %2, %5) writes [2] params [0, 1, 0, 1] on compute {flops = 1024 : i64} : !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x8xf32>, [8, 1], device>
    %6 = ds.view %4 offset 0 : !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device> -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>
    %7 = ds.alloc activations offset 1920 : !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    ds.launch @kernel_25 ins(%6) outs(%7) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>) -> !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>
    %8 = ds.alloc activations offset 2176 : !ds.buffer<tensor<f32>, [], device>
    ds.launch @kernel_26 ins(%7) outs(%8) on compute : (!ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>) -> !ds.buffer<tensor<f32>, [], device>
    ds.record 0 on compute
    ds.wait 0 on reduce
    %9 = ds.alloc workspace offset 1920 : !ds.buffer<tensor<8xi8>, [1], device>
    ds.communicate all_reduce ins(%8) outs(%8) reduce sum along dp carries statistic number 0 workspace(%9 : !ds.buffer<tensor<8xi8>, [1], device>) on reduce : (!ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<f32>, [], device>
    ds.record 1 on reduce
    ds.wait 1 on compute
    ds.launch @kernel_18 ins(%8) outs(%arg3) on compute : (!ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<f32>, [], device>
    return
  }
  ds.kernel @kernel_0 inputs 2 buffers [!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>] {
  ^bb0(%arg0: tensor<2x4x8xf32>, %arg1: tensor<8xf32>):
    %0 = ds.mul %arg0, %arg0 : tensor<2x4x8xf32>
    %1 = ds.reduce sum %0 dims [2] : tensor<2x4x8xf32> -> tensor<2x4xf32>
    %2 = ds.constant dense<8.000000e+00> : tensor<2x4xf32>
    %3 = ds.div %1, %2 : tensor<2x4xf32>
    %4 = ds.constant dense<9.99999974E-6> : tensor<2x4xf32>
    %5 = ds.add %3, %4 : tensor<2x4xf32>
    %6 = ds.rsqrt %5 : tensor<2x4xf32>
    %7 = ds.broadcast %6 dims [0, 1] : tensor<2x4xf32> -> tensor<2x4x8xf32>
    %8 = ds.mul %arg0, %7 : tensor<2x4x8xf32>
    %9 = ds.broadcast %arg1 dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
    %10 = ds.mul %8, %9 : tensor<2x4x8xf32>
    ds.yield %6, %10 : tensor<2x4xf32>, tensor<2x4x8xf32>
  }
  ds.kernel @kernel_1 inputs 0 buffers [!ds.buffer<tensor<2xi64>, [1], device>] {
    %0 = ds.iota dim 0 start 0 step 1 : tensor<2xi64>
    ds.yield %0 : tensor<2xi64>
  }
  ds.kernel @kernel_2 inputs 3 buffers [!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<?xi64>, [1], device>, !ds.buffer<tensor<?xi64>, [1], device>, !ds.buffer<tensor<?xi64>, [1], device>] {
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<?xi64>, %arg2: tensor<?xi64>):
    %0 = ds.broadcast %arg0 dims [] : tensor<i64> -> tensor<?xi64>
    %1 = ds.mul %0, %arg1 : tensor<?xi64>
    %2 = ds.add %arg2, %1 : tensor<?xi64>
    ds.yield %2 : tensor<?xi64>
  }
  ds.kernel @kernel_3 inputs 2 buffers [!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2xi64>, [1], device>] {
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<2xi64>):
    %0 = ds.broadcast %arg0 dims [] : tensor<i64> -> tensor<2xi64>
    %1 = ds.iota dim 0 start 0 step 1 : tensor<2xi64>
    %2 = ds.mul %0, %1 : tensor<2xi64>
    %3 = ds.add %arg1, %2 : tensor<2xi64>
    ds.yield %3 : tensor<2xi64>
  }
  ds.kernel @kernel_4 inputs 1 buffers [!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2xi64>, [1], device>] {
  ^bb0(%arg0: tensor<2xi64>):
    %0 = ds.iota dim 0 start 0 step 1 : tensor<2xi64>
    %1 = ds.constant dense<2> : tensor<2xi64>
    %2 = ds.mul %0, %1 : tensor<2xi64>
    %3 = ds.add %arg0, %2 : tensor<2xi64>
    ds.yield %3 : tensor<2xi64>
  }
  ds.kernel @kernel_5 inputs 2 buffers [!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>] {
  ^bb0(%arg0: tensor<2xi64>, %arg1: tensor<2x4x8xf32>):
    %0 = ds.random_uniform %arg0 id 0 first 0 : tensor<2xi64> -> tensor<2x4x8xf32>
    %1 = ds.constant dense<5.000000e-01> : tensor<2x4x8xf32>
    %2 = ds.compare ge %0, %1 : tensor<2x4x8xf32>
    %3 = ds.compare ne %arg1, %arg1 : tensor<2x4x8xf32>
    %4 = ds.or %2, %3 : tensor<2x4x8xi1>
    %5 = ds.div %arg1, %1 : tensor<2x4x8xf32>
    %6 = ds.constant dense<0.000000e+00> : tensor<2x4x8xf32>
    %7 = ds.select %4, %5, %6 : tensor<2x4x8xf32>
    ds.yield %7 : tensor<2x4x8xf32>
  }
  ds.kernel @kernel_6 inputs 1 buffers [!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>] {
  ^bb0(%arg0: tensor<2x2x4x4xf32>):
    %0 = ds.reduce max %arg0 dims [3] : tensor<2x2x4x4xf32> -> tensor<2x2x4xf32>
    %1 = ds.broadcast %0 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %2 = ds.sub %arg0, %1 : tensor<2x2x4x4xf32>
    %3 = ds.exp %2 : tensor<2x2x4x4xf32>
    %4 = ds.reduce sum %3 dims [3] : tensor<2x2x4x4xf32> -> tensor<2x2x4xf32>
    %5 = ds.broadcast %4 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %6 = ds.div %3, %5 : tensor<2x2x4x4xf32>
    ds.yield %0, %4, %6 : tensor<2x2x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4x4xf32>
  }
  ds.kernel @kernel_7 inputs 1 buffers [!ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>, !ds.buffer<tensor<f32>, [], device>] {
  ^bb0(%arg0: tensor<2x2x4x4xf32>):
    %0 = ds.reduce sum %arg0 dims [0, 1, 2, 3] : tensor<2x2x4x4xf32> -> tensor<f32>
    %1 = ds.constant dense<5.000000e-01> : tensor<f32>
    %2 = ds.mul %0, %1 : tensor<f32>
    ds.yield %2 : tensor<f32>
  }
  ds.kernel @kernel_8 inputs 2 buffers [!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xi1>, [32, 8, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>] {
  ^bb0(%arg0: tensor<2xi64>, %arg1: tensor<2x4x8xf32>):
    %0 = ds.random_uniform %arg0 id 0 first 0 : tensor<2xi64> -> tensor<2x4x8xf32>
    %1 = ds.constant dense<5.000000e-01> : tensor<2x4x8xf32>
    %2 = ds.compare ge %0, %1 : tensor<2x4x8xf32>
    %3 = ds.compare ne %arg1, %arg1 : tensor<2x4x8xf32>
    %4 = ds.or %2, %3 : tensor<2x4x8xi1>
    %5 = ds.div %arg1, %1 : tensor<2x4x8xf32>
    %6 = ds.constant dense<0.000000e+00> : tensor<2x4x8xf32>
    %7 = ds.select %4, %5, %6 : tensor<2x4x8xf32>
    ds.yield %2, %7 : tensor<2x4x8xi1>, tensor<2x4x8xf32>
  }
  ds.kernel @kernel_9 inputs 3 buffers [!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4xf32>, [8, 4, 1], device>, !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>] {
  ^bb0(%arg0: tensor<2x2x4x4xf32>, %arg1: tensor<2x2x4xf32>, %arg2: tensor<2x2x4xf32>):
    %0 = ds.broadcast %arg1 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %1 = ds.sub %arg0, %0 : tensor<2x2x4x4xf32>
    %2 = ds.exp %1 : tensor<2x2x4x4xf32>
    %3 = ds.broadcast %arg2 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %4 = ds.div %2, %3 : tensor<2x2x4x4xf32>
    %5 = ds.constant dense<2.500000e-01> : tensor<2x2x4x4xf32>
    %6 = ds.mul %4, %5 : tensor<2x2x4x4xf32>
    %7 = ds.reduce sum %6 dims [3] : tensor<2x2x4x4xf32> -> tensor<2x2x4xf32>
    %8 = ds.broadcast %7 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %9 = ds.sub %5, %8 : tensor<2x2x4x4xf32>
    %10 = ds.mul %4, %9 : tensor<2x2x4x4xf32>
    ds.yield %10 : tensor<2x2x4x4xf32>
  }
  ds.kernel @kernel_10 inputs 1 buffers [!ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>, !ds.buffer<tensor<2x4x2x4xi1>, [32, 8, 4, 1], device>] {
  ^bb0(%arg0: tensor<2x4x2x4xf32>):
    %0 = ds.compare ne %arg0, %arg0 : tensor<2x4x2x4xf32>
    ds.yield %0 : tensor<2x4x2x4xi1>
  }
  ds.kernel @kernel_11 inputs 1 buffers [!ds.buffer<tensor<2x4x2x4xf32>, [32, 4, 16, 1], device>, !ds.buffer<tensor<2x4x2x4xf32>, [32, 8, 4, 1], device>] {
  ^bb0(%arg0: tensor<2x4x2x4xf32>):
    %0 = ds.constant dense<5.000000e-01> : tensor<2x4x2x4xf32>
    %1 = ds.div %arg0, %0 : tensor<2x4x2x4xf32>
    ds.yield %1 : tensor<2x4x2x4xf32>
  }
  ds.kernel @kernel_12 inputs 4 buffers [!ds.buffer<tensor<?xi1>, [1], device>, !ds.buffer<tensor<?xi1>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%arg0: tensor<?xi1>, %arg1: tensor<?xi1>, %arg2: tensor<?xf32>, %arg3: tensor<?xf32>):
    %0 = ds.or %arg0, %arg1 : tensor<?xi1>
    %1 = ds.constant dense<0.000000e+00> : tensor<f32>
    %2 = ds.broadcast %1 dims [] : tensor<f32> -> tensor<?xf32>
    %3 = ds.select %0, %arg2, %2 : tensor<?xf32>
    %4 = ds.compare le %arg3, %2 : tensor<?xf32>
    %5 = ds.select %4, %2, %3 : tensor<?xf32>
    ds.yield %5 : tensor<?xf32>
  }
  ds.kernel @kernel_13 inputs 3 buffers [!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>] {
  ^bb0(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<2x4x8xf32>):
    %0 = ds.broadcast %arg1 dims [0, 1] : tensor<2x4xf32> -> tensor<2x4x8xf32>
    %1 = ds.mul %arg0, %0 : tensor<2x4x8xf32>
    %2 = ds.mul %arg2, %1 : tensor<2x4x8xf32>
    %3 = ds.reduce sum %2 dims [0, 1] : tensor<2x4x8xf32> -> tensor<8xf32>
    ds.yield %3 : tensor<8xf32>
  }
  ds.kernel @kernel_14 inputs 3 buffers [!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<2x4xf32>, [4, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>] {
  ^bb0(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<8xf32>):
    %0 = ds.broadcast %arg1 dims [0, 1] : tensor<2x4xf32> -> tensor<2x4x8xf32>
    %1 = ds.mul %arg0, %0 : tensor<2x4x8xf32>
    %2 = ds.broadcast %arg2 dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
    %3 = ds.mul %1, %2 : tensor<2x4x8xf32>
    ds.yield %3 : tensor<2x4x8xf32>
  }
  ds.kernel @kernel_15 inputs 0 buffers [!ds.buffer<tensor<?xf32>, [1], device>] {
    %0 = ds.constant dense<0.000000e+00> : tensor<f32>
    %1 = ds.broadcast %0 dims [] : tensor<f32> -> tensor<?xf32>
    ds.yield %1 : tensor<?xf32>
  }
  ds.kernel @kernel_16 inputs 0 buffers [!ds.buffer<tensor<f64>, [], device>] {
    %0 = ds.constant dense<1.000000e-02> : tensor<f64>
    ds.yield %0 : tensor<f64>
  }
  ds.kernel @kernel_17 inputs 2 buffers [!ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>] {
  ^bb0(%arg0: tensor<2x2x4x4xf32>, %arg1: tensor<f32>):
    %0 = ds.reduce sum %arg0 dims [0, 1, 2, 3] : tensor<2x2x4x4xf32> -> tensor<f32>
    %1 = ds.constant dense<5.000000e-01> : tensor<f32>
    %2 = ds.mul %0, %1 : tensor<f32>
    %3 = ds.add %arg1, %2 : tensor<f32>
    ds.yield %3 : tensor<f32>
  }
  ds.kernel @kernel_18 inputs 1 buffers [!ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>] {
  ^bb0(%arg0: tensor<f32>):
    %0 = ds.constant dense<5.000000e-01> : tensor<f32>
    %1 = ds.mul %arg0, %0 : tensor<f32>
    ds.yield %1 : tensor<f32>
  }
  ds.kernel @kernel_19 inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%arg0: tensor<?xf32>, %arg1: tensor<?xf32>):
    %0 = ds.add %arg0, %arg1 : tensor<?xf32>
    ds.yield %0 : tensor<?xf32>
  }
  ds.kernel @kernel_20 inputs 1 buffers [!ds.buffer<tensor<f64>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>] {
  ^bb0(%arg0: tensor<f64>):
    %0 = ds.sqrt %arg0 : tensor<f64>
    %1 = ds.convert %0 : tensor<f64> -> tensor<f32>
    %2 = ds.constant dense<9.9999999999999995E-7> : tensor<f64>
    %3 = ds.add %0, %2 : tensor<f64>
    %4 = ds.constant dense<1.000000e+00> : tensor<f64>
    %5 = ds.div %4, %3 : tensor<f64>
    %6 = ds.min %5, %4 : tensor<f64>
    %7 = ds.convert %6 : tensor<f64> -> tensor<f32>
    ds.yield %1, %7 : tensor<f32>, tensor<f32>
  }
  ds.kernel @kernel_21 inputs 2 buffers [!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<f64>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>] {
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<f64>):
    %0 = ds.convert %arg0 : tensor<i64> -> tensor<f64>
    %1 = ds.constant dense<1.000000e+00> : tensor<f64>
    %2 = ds.add %0, %1 : tensor<f64>
    %3 = ds.constant dense<0.99899999999999999> : tensor<f64>
    %4 = ds.pow %3, %2 : tensor<f64>
    %5 = ds.sub %1, %4 : tensor<f64>
    %6 = ds.sqrt %5 : tensor<f64>
    %7 = ds.constant dense<9.000000e-01> : tensor<f64>
    %8 = ds.pow %7, %2 : tensor<f64>
    %9 = ds.sub %1, %8 : tensor<f64>
    %10 = ds.div %arg1, %9 : tensor<f64>
    %11 = ds.div %1, %6 : tensor<f64>
    %12 = ds.convert %11 : tensor<f64> -> tensor<f32>
    %13 = ds.convert %10 : tensor<f64> -> tensor<f32>
    ds.yield %12, %13 : tensor<f32>, tensor<f32>
  }
  ds.kernel @kernel_22 inputs 1 buffers [!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<i64>, [], device>] {
  ^bb0(%arg0: tensor<i64>):
    %0 = ds.constant dense<1> : tensor<i64>
    %1 = ds.add %arg0, %0 : tensor<i64>
    ds.yield %1 : tensor<i64>
  }
  ds.kernel @kernel_23 inputs 7 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%arg0: tensor<?xf32>, %arg1: tensor<f32>, %arg2: tensor<?xf32>, %arg3: tensor<?xf32>, %arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<?xf32>):
    %0 = ds.broadcast %arg1 dims [] : tensor<f32> -> tensor<?xf32>
    %1 = ds.mul %arg0, %0 : tensor<?xf32>
    %2 = ds.constant dense<0.899999976> : tensor<f32>
    %3 = ds.broadcast %2 dims [] : tensor<f32> -> tensor<?xf32>
    %4 = ds.mul %arg2, %3 : tensor<?xf32>
    %5 = ds.constant dense<1.000000e-01> : tensor<f32>
    %6 = ds.broadcast %5 dims [] : tensor<f32> -> tensor<?xf32>
    %7 = ds.mul %1, %6 : tensor<?xf32>
    %8 = ds.add %4, %7 : tensor<?xf32>
    %9 = ds.mul %1, %1 : tensor<?xf32>
    %10 = ds.constant dense<9.990000e-01> : tensor<f32>
    %11 = ds.broadcast %10 dims [] : tensor<f32> -> tensor<?xf32>
    %12 = ds.mul %arg3, %11 : tensor<?xf32>
    %13 = ds.constant dense<1.000000e-03> : tensor<f32>
    %14 = ds.broadcast %13 dims [] : tensor<f32> -> tensor<?xf32>
    %15 = ds.mul %9, %14 : tensor<?xf32>
    %16 = ds.add %12, %15 : tensor<?xf32>
    %17 = ds.sqrt %16 : tensor<?xf32>
    %18 = ds.broadcast %arg4 dims [] : tensor<f32> -> tensor<?xf32>
    %19 = ds.mul %17, %18 : tensor<?xf32>
    %20 = ds.constant dense<9.99999993E-9> : tensor<f32>
    %21 = ds.broadcast %20 dims [] : tensor<f32> -> tensor<?xf32>
    %22 = ds.add %19, %21 : tensor<?xf32>
    %23 = ds.div %8, %22 : tensor<?xf32>
    %24 = ds.broadcast %arg5 dims [] : tensor<f32> -> tensor<?xf32>
    %25 = ds.mul %23, %24 : tensor<?xf32>
    %26 = ds.sub %arg6, %25 : tensor<?xf32>
    ds.yield %8, %16, %26 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  }
  ds.kernel @kernel_24 inputs 2 buffers [!ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>, !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<2x4x8xf32>, [32, 8, 1], device>] {
  ^bb0(%arg0: tensor<2x4x8xf32>, %arg1: tensor<8xf32>):
    %0 = ds.mul %arg0, %arg0 : tensor<2x4x8xf32>
    %1 = ds.reduce sum %0 dims [2] : tensor<2x4x8xf32> -> tensor<2x4xf32>
    %2 = ds.constant dense<8.000000e+00> : tensor<2x4xf32>
    %3 = ds.div %1, %2 : tensor<2x4xf32>
    %4 = ds.constant dense<9.99999974E-6> : tensor<2x4xf32>
    %5 = ds.add %3, %4 : tensor<2x4xf32>
    %6 = ds.rsqrt %5 : tensor<2x4xf32>
    %7 = ds.broadcast %6 dims [0, 1] : tensor<2x4xf32> -> tensor<2x4x8xf32>
    %8 = ds.mul %arg0, %7 : tensor<2x4x8xf32>
    %9 = ds.broadcast %arg1 dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
    %10 = ds.mul %8, %9 : tensor<2x4x8xf32>
    ds.yield %10 : tensor<2x4x8xf32>
  }
  ds.kernel @kernel_25 inputs 1 buffers [!ds.buffer<tensor<2x2x4x4xf32>, [32, 4, 8, 1], device>, !ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>] {
  ^bb0(%arg0: tensor<2x2x4x4xf32>):
    %0 = ds.reduce max %arg0 dims [3] : tensor<2x2x4x4xf32> -> tensor<2x2x4xf32>
    %1 = ds.broadcast %0 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %2 = ds.sub %arg0, %1 : tensor<2x2x4x4xf32>
    %3 = ds.exp %2 : tensor<2x2x4x4xf32>
    %4 = ds.reduce sum %3 dims [3] : tensor<2x2x4x4xf32> -> tensor<2x2x4xf32>
    %5 = ds.broadcast %4 dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x4xf32>
    %6 = ds.div %3, %5 : tensor<2x2x4x4xf32>
    ds.yield %6 : tensor<2x2x4x4xf32>
  }
  ds.kernel @kernel_26 inputs 1 buffers [!ds.buffer<tensor<2x2x4x4xf32>, [32, 16, 4, 1], device>, !ds.buffer<tensor<f32>, [], device>] {
  ^bb0(%arg0: tensor<2x2x4x4xf32>):
    %0 = ds.reduce sum %arg0 dims [0, 1, 2, 3] : tensor<2x2x4x4xf32> -> tensor<f32>
    ds.yield %0 : tensor<f32>
  }
}

