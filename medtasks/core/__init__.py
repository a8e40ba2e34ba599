"""What every other package uses: errors, files, settings, text. Imports nothing of ours."""
