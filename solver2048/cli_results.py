"""What several commands print of a directory: its report, its counts."""

from __future__ import annotations

import json

import click


def print_report(path: str, objective: str, has_worked: bool, as_json: bool) -> None:
    """Print the report of what was made, counts where it is not finished.

    Raises PublishedMismatch.
    """
    from .layer_sets import LayerSets
    from .objective import parse_objective
    from .report import check_published, make_report
    from .report_format import format_report
    from .store import Store

    sets = LayerSets(Store(path))
    report = make_report(sets, parse_objective(objective, sets.shape))
    if as_json:
        click.echo(json.dumps(report))
    else:
        if not report["is_finished"]:
            print_counts(path, as_json=False)
            click.echo()
        if not has_worked:
            click.echo("Made before; nothing to do. Times are those of then.")
        click.echo(format_report(report))
        click.echo(f"  in {path}")
    check_published(report)


def print_counts(path: str, as_json: bool) -> None:
    """Print the counts of every enumerated age, a row each."""
    from .layer import LayerCounts
    from .layer_sets import LayerSets
    from .store import Store

    sets = LayerSets(Store(path))
    if not as_json:
        click.echo(",".join(LayerCounts.PUBLISHED))
    for layer in sets.counts():
        row = layer.published()
        click.echo(json.dumps(row) if as_json else ",".join(map(str, row.values())))
