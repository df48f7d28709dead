"""The server's own pictures, from the same layout as the page's: SVG and PNG."""
