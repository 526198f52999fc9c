"""The command `mnar` that the wheel installs. It is the same program as the one built with cargo."""

import sys

from . import _native


def main() -> int:
    return _native.command_line(["mnar", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
