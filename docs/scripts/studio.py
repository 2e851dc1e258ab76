"""Take the pictures of the studio, and its film: draw a target by hand, run it, and keep what the page shows.

python docs/scripts/studio.py [pictures] [film]      (needs Chromium; ten minutes on two CPU cores)

The film shows what the server sent, message by message, so it does not depend on how fast this machine draws.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, WebSocketRoute, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "studio"))

from browsing import BOTTOM, CHROMIUM, FLAGS, LEFT, RIGHT, TOP, chosen, draw, two_modes

PICTURES = Path(__file__).parents[1] / "pictures"
HUMPS = (0.465, 0.88)  # places on the axis: about 4 and 10.7 m/s
SIZE = (1320, 850)
FPS, WIDTH = 10, 800
LARGEST = 990_000  # bytes of the film
# Steps of the episode that the film shows: real time, then a fast stretch, then real time again to the end.
STEPS = [*range(0, 50, 2), *np.linspace(50, 920, 36), *range(922, 1001, 2)]
# Time between two pictures, however long this machine takes for one: it spares neither pixels nor shadows then.
STEADY = """
const [ask, began] = [requestAnimationFrame.bind(window), performance.now()];
let [pictures, last] = [0, 0];
window.requestAnimationFrame = (draw) => ask((now) => {
  if (now !== last) [pictures, last] = [pictures + 1, now];
  draw(began + 35 * pictures);
});
"""
CURSOR = """() => {
  const arrow = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  arrow.setAttribute("viewBox", "0 0 20 24");
  arrow.innerHTML = '<path d="M3 2v17l4.500-4 3 7 3-1.300-3-6.700h6Z" fill="#111" stroke="#fff" stroke-width="1.500"/>';
  Object.assign(arrow.style, {position: "fixed", width: "22px", height: "26px", zIndex: 99, pointerEvents: "none"});
  document.body.append(arrow);
  const follow = ({clientX: x, clientY: y}) => Object.assign(arrow.style, {left: `${x}px`, top: `${y}px`});
  addEventListener("pointermove", follow, true);
}"""


@contextmanager
def studio() -> Iterator[str]:
    """The address of a studio with the bundled models."""
    command = [sys.executable, "-m", "himatch", "studio", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(line.split(": ")[1].strip() for line in process.stdout if line.startswith("himatch studio: "))
        finally:
            process.terminate()


def opened(browser: Browser, address: str, *, width: int = SIZE[0], height: int = SIZE[1], **context: object) -> Page:
    """The page once it shows a target and the robot."""
    page = browser.new_context(viewport={"width": width, "height": height}, **context).new_page()
    page.set_default_timeout(180_000)
    page.goto(address)
    page.wait_for_function("() => !document.querySelector('#play').disabled")
    page.wait_for_function("() => document.querySelector('#mixture').textContent > 'W'")
    return page


def drawn(page: Page) -> None:
    """Two modes, by hand."""
    page.click("#clear")
    draw(page, two_modes(*HUMPS))
    page.mouse.move(5, 5)
    page.wait_for_function("() => document.querySelector('#expression').value.includes('uniform')")


def kept(page: Page, name: str, *, colors: int = 256, **shot: object) -> None:
    """A small picture file: the colors that there are, chosen well."""
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot(**shot))).convert("RGB")
    picture.quantize(colors, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE).save(
        PICTURES / name, optimize=True
    )


def pictures(browser: Browser, address: str) -> None:
    """Drawn and running, a mistake, in the dark, on a phone."""
    page = opened(browser, address)
    chosen(page, conditioning="planned", robots=4)
    drawn(page)
    page.select_option("#speed", "10")
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#progress').value >= 640")
    page.click("#play")
    kept(page, "studio.png")
    page.fill("#expression", "0.5*normal(4,1) + 0.5*nrmal(10,1)")
    page.press("#expression", "Enter")
    page.wait_for_selector("#behind mark", state="attached")
    kept(page, "studio-mistake.png", clip=page.locator("section.target").bounding_box())
    page = opened(browser, f"{address}#run=walker2d-cdt", color_scheme="dark")
    chosen(page, conditioning="planned", robots=4)
    page.select_option("#speed", "1")
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#progress').value >= 640")
    page.click("#play")
    kept(page, "studio-dark.png")
    page = opened(browser, f"{address}#run=hopper-cdt", width=390, height=844, has_touch=True)
    page.select_option("#speed", "0.25")
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#progress').value >= 300")
    page.click("#play")
    page.evaluate("document.querySelector('.stage').scrollIntoView({block: 'center'})")
    kept(page, "studio-phone.png")


class Held:
    """What the server sends, held back until the film has come to it."""

    def __init__(self, page: Page) -> None:
        self.messages: list[str | bytes] = []
        self.holding = False
        page.route_web_socket("**/ws/view", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        self.socket = socket
        server.on_message(lambda message: self.messages.append(message) if self.holding else socket.send(message))

    @property
    def over(self) -> bool:
        """Whether the last one has come."""
        return any(isinstance(message, str) and '"type":"end"' in message for message in self.messages[-3:])

    def up_to(self, step: float) -> None:
        """Everything until then, of the pictures the last one."""
        frame = None
        while self.messages:
            message = self.messages[0]
            if isinstance(message, bytes):
                if np.frombuffer(message[:4], "<f4")[0] > step:
                    break
                frame = message
            else:
                if frame is not None and '"type":"end"' in message:
                    break
                self.socket.send(message)
            self.messages.pop(0)
        if frame is not None:
            self.socket.send(frame)


def film(browser: Browser, address: str) -> None:
    """One draws a target; the robots match it."""
    page = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce").new_page()
    page.set_default_timeout(180_000)
    page.add_init_script(STEADY)
    held = Held(page)
    page.goto(address)
    page.wait_for_function("() => document.querySelector('#mixture').textContent > 'W'")
    page.wait_for_function("() => !document.querySelector('#play').disabled")
    chosen(page, conditioning="planned", robots=4)
    page.evaluate(CURSOR)
    page.click("#clear")
    shots: list[Image.Image] = []

    def shot(count: int = 1) -> None:
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        shots.extend(
            [picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)] * count
        )

    box = page.locator("#target").bounding_box()
    assert box is not None
    across, up = box["width"] - LEFT - RIGHT, box["height"] - TOP - BOTTOM
    points = [(box["x"] + LEFT + x * across, box["y"] + TOP + (1 - y) * up) for x, y in two_modes(*HUMPS)]
    page.mouse.move(*points[0])
    shot(5)
    page.mouse.down()
    for k, point in enumerate(points[1:]):
        page.mouse.move(*point)
        if k % 2:
            shot()
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('#expression').value.includes('uniform')")
    page.wait_for_timeout(600)
    shot(5)
    page.hover("#play")
    shot(4)
    held.holding = True
    page.select_option("#speed", "2")
    page.click("#play")
    while not held.over:
        page.wait_for_timeout(500)
    page.mouse.move(0.7 * SIZE[0], SIZE[1] - 20)
    for step in STEPS:
        held.up_to(float(step))
        page.wait_for_timeout(650)
        shot()
    while held.messages:
        held.socket.send(held.messages.pop(0))
    page.wait_for_timeout(1200)
    shot(22)
    write(shots)


def write(shots: list[Image.Image]) -> None:
    """As good as its size allows."""
    for quality in range(80, 10, -10):
        stream = io.BytesIO()
        first, *others = shots
        options = {"duration": round(1000 / FPS), "loop": 0, "quality": quality, "method": 4}
        first.save(stream, "WEBP", save_all=True, append_images=others, **options)
        if stream.tell() <= LARGEST:
            break
    (PICTURES / "studio.webp").write_bytes(stream.getvalue())


def main() -> None:
    """What is named, or both."""
    wanted = sys.argv[1:] or ["pictures", "film"]
    with studio() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        if "pictures" in wanted:
            pictures(browser, address)
        if "film" in wanted:
            film(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
