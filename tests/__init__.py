"""The tests. Kernels are compiled for three objectives, and once for all other numbers: each more takes a minute."""

import os

os.environ.setdefault("PAMO_SPECIALISED", "3")  # before pamo is imported, and for the commands that tests start
