"""`python -m pamo` is the same as `pamo`."""

import sys

from pamo.cli import main

sys.exit(main())
