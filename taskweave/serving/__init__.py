"""A run for whoever asks from outside, without ever writing to it: its pool and its tools, over MCP.

Entry point: `desk.Desk` (what may be asked, and the answers), `stdio.serve`.  Refuses to know of simulations and models.
"""
