"""How the demo's tiny vision-language model was trained; run by maintainers, not installed."""
