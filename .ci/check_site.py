"""Check the built site: links, anchors, what pages fetch; in Chromium also the width of each page, and the search.

Scripts, styles and pictures from elsewhere are faults. Addresses outside the site are listed, not opened.
"""

import argparse
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
NAMED_ONLY = {"canonical", "next", "prev", "search", "index", "author"}  # kinds of <link> that browsers do not fetch
WIDTHS = (390, 1280)
QUERY = "median"


class Page(HTMLParser):
    """The anchors of a page, its links, and the addresses that a browser fetches to show it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect from one element."""
        given = {key: value or "" for key, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in FETCHED and FETCHED[tag] in given and not NAMED_ONLY & set(given.get("rel", "").split()):
            self.fetched.append(given[FETCHED[tag]])


def is_elsewhere(address: str) -> bool:
    """Whether an address leaves the site."""
    return bool(urlsplit(address).netloc)


def faults(site: Path) -> Iterator[str]:
    """Dead links and anchors, files that are missing, and what pages and style sheets fetch from elsewhere."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        shown = path.relative_to(site.resolve())
        for address in page.fetched:
            if is_elsewhere(address):
                yield f"{shown} fetches {address}"
        for address in [*page.links, *page.fetched]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{shown} links to {address}, which does not exist"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{shown} links to {address}, which has no such anchor"
    for sheet in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        text = sheet.read_text("utf-8")
        for address in re.findall(r"(?:url\(|@import\s*)[\"']?(https?:[^\"')]+)", text):
            yield f"{sheet.relative_to(site)} fetches {address}"


def addresses(site: Path) -> list[str]:
    """Return the addresses outside the site that pages link to. They are listed, not opened."""
    found = {link for path in site.rglob("*.html") for link in Page(path).links if is_elsewhere(link)}
    return sorted(found)


# Loads every page in frames of both widths, and reports what is too wide: an element of the article that ends beyond
# the frame, unless it scrolls within an ancestor.
PROBE = """<!doctype html><body><script>
const pages = PAGES, widths = WIDTHS, wide = [];
const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
function frameOf(address) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "width:1280px;height:900px;border:0";
    frame.src = address;
    document.body.append(frame);
    return new Promise(done => { frame.onload = () => done(frame); });
}
function isCut(element, width, article) {
    if (element.getBoundingClientRect().right <= width + 1) return false;
    for (let e = element.parentElement; e && e !== article; e = e.parentElement) if (scrolls(e)) return false;
    return true;
}
async function measure(page) {
    const frame = await frameOf(page);
    for (const width of widths) {
        frame.style.width = `${width}px`;
        const article = frame.contentDocument.querySelector("article");
        const cut = article ? [...article.querySelectorAll("*")].filter(e => isCut(e, width, article)) : [];
        if (cut.length) wide.push(`${page} in ${width} pixels: ${cut[0].tagName} ${cut[0].className}`);
    }
    frame.remove();
}
async function search() {
    const frame = await frameOf("search.html?q=QUERY");
    for (let i = 0; i < 400; i++) {
        await new Promise(done => setTimeout(done, 50));
        const found = frame.contentDocument.querySelectorAll("#search-results li a");
        if (found.length > 5) return found.length;
    }
    return 0;
}
(async () => {
    const found = await search(), queue = [...pages];
    await Promise.all([1, 2, 3, 4].map(async () => { while (queue.length) await measure(queue.pop()); }));
    await fetch("/report", {method: "POST", body: JSON.stringify({wide, found, pages: pages.length})});
})();
</script>"""


def in_browser(site: Path) -> Iterator[str]:
    """Pages that are wider than their window, and a search without results, in headless Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("SKIPPED: Chromium was not found; widths and search were not checked")
        return
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    probe = PROBE.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS)).replace("QUERY", QUERY)
    reported, report = threading.Event(), {}

    class Handler(http.server.SimpleHTTPRequestHandler):
        """Serves the site and the probe, and takes its report."""

        def do_GET(self) -> None:
            if self.path != "/probe":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(probe.encode())
            return None

        def do_POST(self) -> None:
            report.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            reported.set()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=os.fspath(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        command += [f"http://127.0.0.1:{server.server_port}/probe"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if not reported.wait(600):
                yield "the browser did not answer within ten minutes"
                return
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    print(f"{report['pages']} pages at {WIDTHS} pixels; {report['found']} results for {QUERY!r}")
    yield from report["wide"]
    if not report["found"]:
        yield f"a search for {QUERY!r} finds nothing"


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--browser", action="store_true", help="check widths and search in headless Chromium")
    parser.add_argument("--list", action="store_true", help="print the addresses outside the site")
    options = parser.parse_args()
    found = list(faults(options.site))
    if options.browser:
        found += in_browser(options.site)
    print(*found, sep="\n")
    outside = addresses(options.site)
    print(f"{len(found)} faults; {len(outside)} addresses outside the site")
    if options.list:
        print(*outside, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
