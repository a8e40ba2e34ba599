"""The leaderboard as plain data, and its numbers as text."""
