"""What agents may use on the world: typed functions, and the world of a run that they read and change.

Entry points: `World` (world.py), `Tool` (tool.py), `shelf.granted` (which tools a role has).  Refuses to know of simulations and models.
"""
