"""Speed, as ratios against a yardstick in the same run: `make bench`."""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # one thread for the yardsticks too; matrices this small gain nothing from more
