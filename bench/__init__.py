"""Speed as ratios against peers and limits, each measured in one run: `make bench`."""
