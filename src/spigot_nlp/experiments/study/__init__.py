"""Many trainings that answer one question: systems, seeds and settings from one file, run until all are finished."""
