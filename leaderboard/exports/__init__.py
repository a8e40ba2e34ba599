"""A board as files, and scores and samples in the formats of others."""
