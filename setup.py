"""A wheel carries the committed files of ``datasets/``, a checkout is on the path; all else stands in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

#: Where cepbench/streams/datasets/catalogue.py looks for them.
TARGET = Path("cepbench", "streams", "datasets", "bundled")


class WithDatasets(build_py):
    """Copies every declared data set without ``data``, which anybody makes again."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # a checkout has them where they are
            return
        for declaration in sorted(Path("datasets").glob("*/dataset.toml")):
            folder = declaration.parent
            target = Path(self.build_lib) / TARGET / folder.name
            self.mkpath(str(target))
            for file in sorted(folder.iterdir()):
                if file.is_file():
                    self.copy_file(str(file), str(target / file.name))


class ByPath(editable_wheel):
    """Installs a checkout as a folder on the path.

    The finder that is the default comes behind the working directory: in the folder above the checkout,
    which is called cepbench too, Python would import that as a namespace package.
    """

    def initialize_options(self) -> None:
        super().initialize_options()
        self.mode = "compat"


setup(cmdclass={"build_py": WithDatasets, "editable_wheel": ByPath})
