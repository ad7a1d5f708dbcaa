"""Pictures and pages: SVG and HTML that need nothing beside themselves, in light and in dark."""
