"""What happens to the organization from outside, and who hears of it?  (TaskWeave, Sec. 4.6 and App. K.1.)

Entry points: `load_incidents` (a file), `read_incident` and `meant_for` (one from the inbox), `Incidents` (those of a running year).
"""

from taskweave.simulation.incidents.effects import Absence, Incident, after
from taskweave.simulation.incidents.files import FORK, load_incidents, meant_for, read_incident, too_late
from taskweave.simulation.incidents.in_force import Incidents, InForce
from taskweave.simulation.incidents.names import Who

__all__ = [
    "FORK",
    "Absence",
    "InForce",
    "Incident",
    "Incidents",
    "Who",
    "after",
    "load_incidents",
    "meant_for",
    "read_incident",
    "too_late",
]
