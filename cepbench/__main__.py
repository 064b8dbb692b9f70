"""``python -m cepbench`` is the command ``cepbench``."""

from cepbench.presentation.commands.app import main

if __name__ == "__main__":
    main()
