"""A machine as others read it: data frames, graphs, files of graph formats, a summary."""
