"""Network parts without a task: encoders, scorers, features of heads."""
