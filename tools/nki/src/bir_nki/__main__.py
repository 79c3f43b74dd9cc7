"""`python -m bir_nki`."""

import sys

from .cli import main

sys.exit(main())
