"""A study with contrasts and hypotheses, and the sweep that answers them."""

DROP = """
[[contrast]]
name = "drop"
base = { optimizer = "sgd", batch_size = 32, protocol = "A-epochs" }
arm = { batch_size = 1024 }
outcome = "test_acc"
"""
STUDY = f"""
model = "small_cnn"
[sweep]
batch_size = [32, 1024]
ghost_batch = [0, 25]
{DROP}
[[contrast]]
name = "lamb-drop"
base = {{ optimizer = "lamb", batch_size = 32, protocol = "A-epochs" }}
arm = {{ batch_size = 1024 }}
outcome = "test_acc"
[[contrast]]
name = "lamb-less-sgd"
minuend = "lamb-drop"
subtrahend = "drop"
[[contrast]]
name = "ghost-recovers"
recovers = "drop"
arm = {{ batch_size = 1024, ghost_batch = 25 }}
[[contrast]]
name = "matched-loss"
base = {{ optimizer = "sgd", batch_size = 32, protocol = "B" }}
arm = {{ batch_size = 1024 }}
outcome = "test_loss"
at = "loss-1.0"
[[contrast]]
name = "sharper"
base = {{ optimizer = "sgd", batch_size = 32, protocol = "B" }}
arm = {{ batch_size = 1024 }}
outcome = "probe.top_eigenvalues.lambda_1"
[[contrast]]
name = "sharper-on-the-way"
base = {{ optimizer = "sgd", batch_size = 32, protocol = "B" }}
arm = {{ batch_size = 1024 }}
outcome = "probe.top_eigenvalues.lambda_1"
at = "loss-1.5"
[[hypothesis]]
name = "it-drops"
claim = "Large batches lose."
source = "us"
contrasts = ["drop", "lamb-drop"]
rule = "all"
expect = "less"
margin = 1.0
[[hypothesis]]
name = "lamb-differs"
claim = "LAMB loses less."
contrasts = ["lamb-less-sgd"]
expect = "greater"
margin = 3.0
[[hypothesis]]
name = "ghosts"
claim = "Ghost batches bring it back."
contrasts = ["ghost-recovers"]
expect = "greater"
margin = 0.2
"""
# 50 -> 40 % at B = 1,024; ghost batches bring half of that back.
PLAN = dict(
    batch_sizes=(32, 1024), optimizers=("sgd", "lamb"), seeds=(1, 2, 3, 4, 5), images=1500, updates=4, seed_error=0.003,
    arms=(("ghost_batch", 25, (1024,), 0.5),), study=STUDY,
)  # fmt: skip
