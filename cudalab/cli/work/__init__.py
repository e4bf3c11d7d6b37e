"""What the commands do: a module for each, imported when it runs."""
