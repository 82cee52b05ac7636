"""What all commands share: the exit codes, and errors as one line, with the remedy where one is."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import threading
from typing import Any

import click

from .errors import INTERRUPTED_EXIT_CODE, SolutionDamaged, SolverError
from .location import is_url

EXIT_CODES = """\b
Exit codes:
  0  fine                          6  no solution there, or of another kind
  2  usage                         7  in use by another process
  3  malformed or impossible board 8  damaged
  4  unreachable board             9  not enough space or memory
  5  not solved (yet)             10  differs from a published figure
130  interrupted                  11  a solution far away cannot be read
"""


class Command(click.Command):
    """A command whose help ends with its example as written, and whose errors are one line.

    resumes : whether the same command goes on where it was interrupted
    """

    def __init__(self, *args: Any, example: str = "", resumes: bool = False, **kwargs: Any) -> None:
        self._resumes = resumes
        kwargs["epilog"] = "\b\nExample:\n" + "".join(f"  {line}\n" for line in example.split("\n"))
        super().__init__(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        if threading.current_thread() is threading.main_thread():
            # SIGTERM ends a command as Ctrl-C does: what is half done is cleaned up.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return super().invoke(context)
        except SolverError as error:
            advice = ""
            if isinstance(error, SolutionDamaged) and self.name != "repair":
                path = str(error.place or context.params.get("path", ""))
                advice = f"; {remedy(path)}" if path and not is_url(path) else ""
            click.echo(f"error: {error}{advice}", err=True)
            context.exit(error.exit_code)
        except MemoryError:
            click.echo("error: not enough memory; nothing finished is lost", err=True)
            context.exit(9)
        except RuntimeError as error:
            if "start new thread" not in str(error):
                raise
            click.echo("error: no memory for a thread; nothing finished is lost", err=True)
            context.exit(9)
        except BrokenPipeError:
            # The reader has seen enough; nothing more may be written, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(0)
        except (OSError, UnicodeError) as error:
            click.echo(f"error: {error}", err=True)
            is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            context.exit(9 if is_full else 6)
        except KeyboardInterrupt:
            # One is enough: another would only spoil the clean end.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            advice = "; the same command goes on where it stopped" if self._resumes else ""
            click.echo(f"interrupted{advice}", err=True)
            context.exit(INTERRUPTED_EXIT_CODE)


def remedy(path: str) -> str:
    """What to do about a damaged solution."""
    return f"run `solver2048 repair {shlex.quote(path)}`"
