"""`python -m fasim`."""

import sys

from fasim.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
