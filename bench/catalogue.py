# SPDX-License-Identifier: Apache-2.0
"""The list of models that bench/exports.py exports; the files catalogue_* fill it."""
import importlib.util

# name -> (package, channels_last, function of (small, batch) that makes the module and its inputs)
CATALOGUE = {}


def entry(name, package="torch", channels_last=False):
    def add(function):
        CATALOGUE[name] = (package, channels_last, function)
        return function
    return add


def installed(package):
    return importlib.util.find_spec(package) is not None


def names():
    return [name for name, (package, _, _) in CATALOGUE.items() if installed(package)]


def image(batch, size):
    import torch
    return (torch.rand(batch, 3, size, size),)
