"""What an instrumented run shows: profiles, findings, and the pages made of them."""
