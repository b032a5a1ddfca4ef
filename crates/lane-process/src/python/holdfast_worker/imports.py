"""Loading the extension's code, and what it imports.

Python is started without `site`, which would take a third of the start time. The first import of a module that is neither in the
standard library nor beside the file loads `site`. Modules that are not found may have a substitute: `agents`, `core.extensions`, `pith`.
"""

import builtins
import importlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location

STANDINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins")
NAMED = ("agents", "core", "pith")


class Late:
    """Finds modules that no other finder finds."""

    complete = False

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is not None:
            return None
        if not cls.complete:
            cls.complete = True
            if sys.flags.no_site:
                import site

                site.main()
            found = PathFinder.find_spec(name)
            if found is not None:
                return found
        return PathFinder.find_spec(name, [STANDINS]) if name in NAMED else None


class Sqlite:
    """Gives `pysqlite3` to who imports `sqlite3`, if the extension's packages have it: many builds of Python have an SQLite that cannot
    load extensions such as `sqlite-vec`."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "sqlite3" or not any(os.path.isdir(os.path.join(it, "pysqlite3")) for it in sys.path):
            return None
        import pysqlite3.dbapi2

        sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
        return ModuleSpec(name, Alias(pysqlite3), is_package=True)


def prepare():
    """Removes the worker's folder from the import path."""
    del sys.path[0]
    sys.meta_path.insert(0, Sqlite)
    sys.meta_path.append(Late)
    for name in ("exit", "quit"):
        if not hasattr(builtins, name):
            setattr(builtins, name, sys.exit)


def load_file(path, name):
    """The module of a file. The files beside it can be imported by name; one with the name of a standard module does not shadow
    it."""
    path = os.path.abspath(path)
    sys.path += [os.path.dirname(path), os.getcwd()]
    name = f"{name}_" if name in sys.stdlib_module_names else name
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def package(name, path):
    """A package without a file."""
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = path
    module = module_from_spec(spec)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


class Same:
    """A module of the extension is one module, whether it is imported by its name or as `sandbox.extensions.<id>.<name>`. Modules of
    its dependencies likewise, after its own."""

    def __init__(self, folders):
        self.folders = folders

    def find_spec(self, name, path=None, target=None):
        for prefix, folder in self.folders.items() if path is None else ():
            place = os.path.join(folder, name)
            if os.path.isfile(f"{place}.py") or os.path.isfile(os.path.join(place, "__init__.py")):
                return ModuleSpec(name, Alias(importlib.import_module(f"{prefix}.{name}")))
        return None


class Alias:
    """Returns a module that is loaded already."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        # The import machinery has replaced these by the other name's.
        module.__spec__ = self.spec


def load_class_module(extension, module):
    """A module of an extension's folder, which is the package `sandbox.extensions.<id>`. Its dependencies are in a hidden folder."""
    package("sandbox", [])
    beside = os.path.abspath(".depends_on")
    package("sandbox.extensions", [beside])
    prefix, folder = f"sandbox.extensions.{extension}", os.getcwd()
    if os.path.isfile("__init__.py"):
        start = os.path.join(folder, "__init__.py")
        spec = spec_from_file_location(prefix, start, submodule_search_locations=[folder])
        sys.modules[prefix] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[prefix])
    else:
        package(prefix, [folder])
    others = sorted(os.listdir(beside)) if os.path.isdir(beside) else []
    theirs = {f"sandbox.extensions.{it}": os.path.join(beside, it) for it in others}
    sys.meta_path.insert(sys.meta_path.index(Late), Same({prefix: folder, **theirs}))
    return importlib.import_module(f"{prefix}.{module}")
