"""What the organization has produced: run.db, its tables and its search.  Derived, and rebuilt by re-execution."""
