"""Arms kept in rank order, in one array or in tiers."""
