"""A study of a noisy quadratic, whose answer is known in closed form, and its test study, for `basin forecast`."""

N, EXCESS, CHECK = 1024, 0.1, 256
SMALL = f"""model = "noisy_quadratic"
loss = "mse"
protocol = "B"
target_loss = {128 + EXCESS}
max_gradients = 60000
check_every = {CHECK}
micro_batch = 512
schedule = "constant"
warmup = 0.0
dtype = "float64"
loss_levels = [129.0, 128.3]
[data]
set = "coin_flips"
train_examples = {N}
[sgd]
momentum = 0.0
[probes]
run = ["noise_scale", "preconditioned_curvature"]
subset = 0
micro_batch = 512
dtype = "float64"
at = ["end", "loss"]
[sweep]
batch_size = [64, 256]
learning_rate = [1.0, 1.4, 1.7]
seed = [1]
"""
RATES = [0.5, 1.0, 1.4, 1.7]
TEST = (
    SMALL.replace("batch_size = [64, 256]", "batch_size = [512, 1024]")
    .replace("learning_rate = [1.0, 1.4, 1.7]", f"learning_rate = {RATES}")
    .replace("max_gradients = 60000", "max_gradients = 300000")
)
