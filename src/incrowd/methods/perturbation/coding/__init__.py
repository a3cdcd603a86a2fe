"""Coding: values beyond a bound become the bound."""
