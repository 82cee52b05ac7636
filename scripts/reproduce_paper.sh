#!/usr/bin/env bash
# Solves 4x3 keeping the start values and counts alone, and shows them beside the paper's.
#
# Run it again after whatever stopped it: it goes on there. About 64 GB of disk space, days of time.
# Arguments go to `solver2048 solve`: --threads 2, --disk 40GiB, --expect-counts FILE, --out DIR.
set -euo pipefail

exec solver2048 solve 4x3 --keep start --out solutions/4x3-start "$@"
