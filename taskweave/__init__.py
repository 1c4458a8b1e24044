"""TaskWeave simulates an organization for a year with language-model agents."""
