"""`python -m incrowd` is the same command as `incrowd`."""

from incrowd.cli.entry import start

if __name__ == "__main__":
    start()
