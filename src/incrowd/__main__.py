"""`python -m incrowd` is the same command as `incrowd`."""

import sys

from incrowd.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
