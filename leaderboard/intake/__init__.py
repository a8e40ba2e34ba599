"""Result directories found and checked: files, rules, private text."""
