"""`python -m train.lab`: the same as `python -m train lab`."""

import sys

from train.lab.command import main

sys.exit(main(sys.argv[1:]))
