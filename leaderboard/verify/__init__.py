"""What a submission's responses and verdicts give by the data and rules of this machine."""
