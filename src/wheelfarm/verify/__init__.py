"""Checks over facts, and the report without which nothing is published."""
