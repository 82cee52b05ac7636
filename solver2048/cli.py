"""The command line: options in, one call of the library, results out."""

from __future__ import annotations

import click

from . import __version__
from .cli_checksums import checksums
from .cli_command import EXIT_CODES
from .cli_counts import counts
from .cli_explain import explain
from .cli_games import games
from .cli_pack import pack
from .cli_plan import plan
from .cli_play import play
from .cli_plot import plot
from .cli_query import query
from .cli_repair import repair
from .cli_report import report
from .cli_sample import sample
from .cli_serve import serve
from .cli_sets import sets
from .cli_simulate import simulate
from .cli_solve import solve
from .cli_stats import stats
from .cli_status import status
from .cli_verify import verify


@click.group(
    epilog="\b\nExample:\n  solver2048 solve 3x3 && solver2048 status solutions/3x3\n\n"
    + EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="solver2048")
def main() -> None:
    """Solve 2048 on small boards exactly, and ask the solution.

    Boards: 2x2, 2x3, 2x4, 3x3, 4x3 and their transposes.
    """


main.add_command(checksums)
main.add_command(counts)
main.add_command(explain)
main.add_command(games)
main.add_command(pack)
main.add_command(plan)
main.add_command(play)
main.add_command(plot)
main.add_command(query)
main.add_command(repair)
main.add_command(report)
main.add_command(sample)
main.add_command(serve)
main.add_command(sets)
main.add_command(simulate)
main.add_command(solve)
main.add_command(stats)
main.add_command(status)
main.add_command(verify)


def entry() -> None:
    """The console script."""
    main(prog_name="solver2048")
