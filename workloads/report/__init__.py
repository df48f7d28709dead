"""Reports of several runs: tables and plots in one HTML file that needs nothing else, and CSV.

`cases`     samples of any program as cases with summaries; weak and strong series
`sections`  the findings in sentences, and the tables of a report
`plots`     figures as SVG (matplotlib, loaded only here)
`command`   ``nidmap bench report``: the HTML file, the text, the CSV
"""
