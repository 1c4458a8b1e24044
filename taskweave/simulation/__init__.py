"""The loop of the paper: planning units, execution, dependencies, incidents.  Writes a run; reads no report."""
