"""Attacks on answers: numbers that are asked for rather than tables that are published."""
