"""The command ``cepbench``; each module is a command or a group of commands.

To add a group of commands, such as ``data``:

1. ``presentation/commands/data.py`` has ``app = typer.Typer(help="Data sets: …", **GROUP)`` with ``GROUP``,
   ``examples`` and ``declared`` from :mod:`cepbench.presentation.commands.options`, and functions under
   ``@app.command("list", epilog=examples("cepbench data list"))`` and ``@declared``, whose parameters
   ``options.toml`` describes.
2. ``presentation/commands/app.py`` imports that module and has the line
   ``app.add_typer(data.app, name="data")``. A command without a group:
   ``app.command(epilog=plan.EXAMPLES)(plan.plan)``.

Conventions:

- Modules with commands import only the standard library, typer, ``cepbench.errors`` and each other,
  so that ``--help`` and tab completion are fast. Everything else is imported inside the command's
  function; a test checks this.
- Results go to standard output by :mod:`cepbench.presentation.commands.output`, imported as ``out``,
  progress and log lines to standard error. With ``--json`` standard output is one JSON document.
- Errors are those of :mod:`cepbench.errors`; ``app.py`` prints them and exits with status 1. Usage
  errors are ``typer.BadParameter`` with status 2; Ctrl-C exits with 130.
- Each ``--help`` ends with examples, by ``epilog=examples(...)``, which the tests run.
"""
