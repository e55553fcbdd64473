"""Debian's Chromium, in which pages are looked at."""

import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium")


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])  # as root it has no sandbox
        yield browser
        browser.close()
