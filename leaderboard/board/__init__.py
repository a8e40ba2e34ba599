"""The leaderboard as plain data, and how it is made of scored runs."""
