"""Helpers that extensions import."""
