"""Speed, as ratios against a yardstick in the same run: `make bench`."""
