"""Programs under the instruments: built as a library, run and reported on."""
