"""The command ``cepbench``: each file a command or a group of them.

How a group of commands comes in, ``data`` for instance:

1. ``commands/data.py`` has ``app = typer.Typer(help="Data sets: …", **GROUP)`` with ``GROUP``,
   ``examples`` and shared options from :mod:`cepbench.commands.options`, and functions under
   ``@app.command("list", epilog=examples("cepbench data list"))``.
2. ``commands/app.py`` imports that module and has the line
   ``app.add_typer(data.app, name="data")``. A command without a group:
   ``app.command(epilog=plan.EXAMPLES)(plan.plan)``.

What every command keeps:

- Modules with commands load nothing but the standard library, typer, ``cepbench.errors`` and each
  other: ``--help`` and tab completion stay quick. What a command needs it imports inside its
  function; a test sees to that.
- What was asked for goes to standard output by :mod:`cepbench.commands.output`, all else
  (progress, remarks) to standard error. With ``--json`` standard output is one JSON document.
- Errors are those of :mod:`cepbench.errors`; ``app.py`` is the one place that shows them and
  ends with 1. Wrong usage is ``typer.BadParameter`` and ends with 2, Ctrl-C with 130.
- Each ``--help`` ends with an example that can be run, by ``epilog=examples(...)``; the tests run
  them.
"""
