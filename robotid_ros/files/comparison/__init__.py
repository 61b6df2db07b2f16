"""Results beside others: of other sessions and methods, and on other recordings."""
