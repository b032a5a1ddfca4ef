"""Stands in for the package of another program, of which extensions import the contract."""
