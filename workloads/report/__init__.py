"""Reports of several runs: tables and plots in one HTML file that needs nothing else, and CSV.

`cases`     samples of any program as cases with summaries; weak and strong series
`sections`  the findings in sentences, and the tables of a report
`predicted` what the network model says beside what was measured
`plots`     figures as SVG (matplotlib, loaded only here)
`page`      the HTML file, the text, the CSV
"""
