# What is made by hand and reviewed like code.
.PHONY: golden lock

golden:
	python -m tests.golden

lock:
	python -m tests.prompts_lock
	python -m tests.tables_lock
