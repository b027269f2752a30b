"""`python -m surefoot`: the same as the command `surefoot`."""

from surefoot.cli import main

main()
