"""The page: what an operator sees in a browser. It shows what the public API answers, and nothing else."""
