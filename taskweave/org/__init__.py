"""Who works here: the organization file, roles, people, the delegation graph and the calendar.  Pure: no clock, no files written."""
