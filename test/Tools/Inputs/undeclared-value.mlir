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
