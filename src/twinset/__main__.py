"""``python -m twinset``."""

import sys

from twinset.cli.main import main

sys.exit(main())
