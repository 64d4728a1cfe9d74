"""Where jobs run: this machine, a Dask cluster, GitHub's runners."""
