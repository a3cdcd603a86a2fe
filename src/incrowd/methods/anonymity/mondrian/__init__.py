"""Mondrian: a table cut along its columns, again and again, while every piece stays a crowd."""
