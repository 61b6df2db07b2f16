"""Stands where Bokeh would be, as on a robot without it: see `live_session.without_pages`."""

raise ModuleNotFoundError("No module named 'bokeh'", name='bokeh')
