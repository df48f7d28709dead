"""Reports of several runs: tables and plots in one HTML file that needs nothing else, and CSV.

`gather`    samples of any program as cases with summaries
`scaling`   weak and strong series, and their fits
`sections`  the tables of a report
`predicted` what the network model says beside what was measured
`plots`     figures as SVG (matplotlib, loaded only here)
`page`      the HTML file
"""
