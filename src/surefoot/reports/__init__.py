"""Every page and figure that we write: one frame (`html_page.py`), one stylesheet (`style.css`), one place of colours.

A page is one file that needs no network: light, dark or printed. What it says belongs to the room that writes it.
"""
