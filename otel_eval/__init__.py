"""Scores what AI agents did, from the spans they already emit."""
