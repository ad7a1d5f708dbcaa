"""Studies: systems x points x seeds from one TOML file, with equal budgets for tuning; `docs/studies.md` says how."""
