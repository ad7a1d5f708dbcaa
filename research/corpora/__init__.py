"""Corpora from public sources: `python -m research.corpora.NAME ... --out DATA`, one script for each.

What is read belongs to others and is not part of spigot. A script writes all files of its corpus or none, to a folder
of DATA, and prints what they hold and their SHA-256.
"""
