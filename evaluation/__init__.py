"""The paper's whole evaluation: ``python -m evaluation``, from the root of the repository."""
