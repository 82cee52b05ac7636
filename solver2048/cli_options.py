"""Arguments and options that several commands take."""

from __future__ import annotations

import click

path_argument = click.argument("path", type=click.Path())
objective_option = click.option(
    "--objective", default="score", show_default=True, metavar="NAME",
    help="'score', or 'tile:N' for the probability of ever holding tile N.",
)  # fmt: skip
threads_option = click.option(
    "--threads", type=int, help="Number of threads.  [default: all processors]"
)
memory_option = click.option(
    "--memory", metavar="BYTES",
    help="Bound, such as 20GiB.  [default: the machine's, less a margin]",
)  # fmt: skip
force_option = click.option(
    "--force", is_flag=True, help="Go on even if it is forecast not to fit."
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
