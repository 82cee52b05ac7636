"""The page in a real browser: play, setting up, permalinks, small screens, dark and light."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from solver2048 import open_solution

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (extra `test`)")

SCREENSHOTS = Path(__file__).parent.parent / "build/screenshots"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# As root, as in most containers, Chromium has no sandbox, and little shared memory.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
DESKTOP, PHONE = {"width": 1180, "height": 780}, {"width": 360, "height": 740}

BEST_OR_OVER = '.action.best:not([disabled]), [data-code="game_over"]'
START = "#s=2x4&b=2,2,4,0/0,0,0,2"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def open_page(browser, service):
    """Opens the page at an address; nothing may fail, and nothing come from elsewhere."""
    contexts, troubles = [], []

    def check(request):
        if not request.url.startswith((service.address, "data:")):
            troubles.append(request.url)

    def open_at(fragment="", path="", viewport=DESKTOP, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", check)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda entry: entry.type == "error" and "status of 4" not in entry.text
                and troubles.append(entry.text))  # fmt: skip
        page.goto(service.address + path + fragment)
        if not path:
            page.wait_for_selector("body[data-ready]")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert troubles == []


def shoot(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")


def shown(page, name):
    return page.locator(f'[data-show="{name}"]').inner_text()


def board_of(page):
    """The board by its cells' labels, as a screen reader has it."""
    labels = page.locator("#board .cell").evaluate_all("cells => cells.map(c => c.ariaLabel)")
    found = {}
    for label in labels:
        row, column, tile = re.fullmatch(r"row (\d+), column (\d+): (\w+)", label).groups()
        found[int(row), int(column)] = 0 if tile == "empty" else int(tile)
    height, width = max(found)
    return [[found[row, column] for column in range(1, width + 1)] for row in range(1, height + 1)]


def until(page, script, arg=None):
    """A script is true: asked from here, as the page's policy forbids what Playwright does."""
    for _ in range(1200):
        if page.evaluate(script, arg):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never true: {script}")


def wait_for_board(page, rows):
    text = "/".join(",".join(map(str, row)) for row in rows)
    until(page, "text => location.hash.endsWith('b=' + text)", arg=text)


def wait_for_values(page):
    until(page, "document.querySelector('[data-show=value]').textContent !== '–'")


def wait_for_move(page, before):
    """The board has changed, its values are there."""
    until(page, "old => location.hash !== old", arg=before)
    wait_for_values(page)


def paste(page, text):
    page.get_by_label("Board as text").evaluate(
        """(input, text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text", text);
          input.dispatchEvent(new ClipboardEvent("paste", {clipboardData, cancelable: true}));
        }""",
        text,
    )


def action(page, name):
    return page.locator(f'.action[data-action="{name}"]')


def is_noted(page, code):
    page.wait_for_selector(f'[data-show="notice"][data-code="{code}"]')
    return page.locator('[data-show="notice"]').is_visible()


def number(text):
    return float(text.replace(",", "").replace("−", "-").split()[0])


def test_values_of_all_actions_are_shown(open_page, solved):
    page = open_page(START)
    wait_for_values(page)
    with open_solution(solved("2x4")) as solution:
        answer = solution.query("2 2 4 ./. . . 2")
    assert number(shown(page, "value")) == round(answer.value, 2)
    for name, value in answer.actions.items():
        button = action(page, name)
        assert ("best" in button.get_attribute("class").split()) == (name in answer.best)
        if value is None:
            assert button.is_disabled()
            assert "illegal" in button.get_attribute("aria-label")
            continue
        assert number(button.locator(".worth").inner_text()) == round(value.value, 2)
        if name not in answer.best:
            loss = number(button.locator(".loss").inner_text())
            assert loss == pytest.approx(value.value - answer.value, abs=0.006)
    shoot(page, "desktop-light")


def test_a_game_by_keys_with_chosen_tiles(open_page, solved):
    """A lossy move, its spawn placed by keyboard, what it lost, and taking it back."""
    page = open_page("#s=2x4&b=4,0,8,0/2,0,2,16")
    wait_for_values(page)
    page.get_by_label("I choose").check(force=True)
    with open_solution(solved("2x4")) as solution:
        answer = solution.query("4 . 8 . / 2 . 2 16")
    worst = min((v.value, n) for n, v in answer.actions.items() if v and n not in answer.best)[1]
    page.locator("h1").click()
    page.keyboard.press(f"Arrow{worst.title()}")
    page.wait_for_selector('#board[data-allow="empty"]')
    assert "Choose where" in page.locator("#hint").inner_text()
    shoot(page, "choose-spawn")
    before = board_of(page)
    focused = page.evaluate("document.activeElement.dataset.cell")
    row, column = (int(i) for i in focused.split(","))
    assert before[row][column] == 0
    page.keyboard.press("4")
    before[row][column] = 4
    wait_for_board(page, before)
    assert board_of(page) == before
    loss = answer.value - answer.actions[worst].value
    assert f"{worst}: lost {loss:.2f} points" in shown(page, "last-move")
    assert number(shown(page, "lost")) == round(-loss, 2)
    page.keyboard.press("u")
    wait_for_board(page, [[4, 0, 8, 0], [2, 0, 2, 16]])
    assert shown(page, "last-move") == "No move yet."


def test_a_whole_game_by_keys_without_loss(open_page):
    """The best action by its arrow or letter until none is left."""
    page = open_page("#s=2x3&b=2,2,0/0,0,0")
    letters = {"up": "w", "down": "s", "left": "a", "right": "d"}
    moves = 0
    while True:
        page.wait_for_selector(BEST_OR_OVER, state="attached")
        if page.locator('[data-code="game_over"]').count():
            break
        best = page.locator(".action.best").first.get_attribute("data-action")
        address = page.url
        key = (f"Arrow{best.title()}", letters[best], "b")[moves % 3]
        page.keyboard.press(key)
        until(page, "old => location.href !== old", arg=address)
        moves += 1
    assert moves > 5
    assert shown(page, "optimal") == f"{moves} of {moves}"
    assert shown(page, "lost") == "0"
    until(page, "document.querySelector('[data-show=value]').textContent === '0.00'")
    assert number(shown(page, "expected")) == number(shown(page, "score"))
    shoot(page, "game-over")


def test_setting_up_by_clicks_palette_keys_and_text(open_page):
    page = open_page(START)
    page.get_by_role("button", name="Set up").click()
    cell = page.locator('.cell[data-cell="0,3"]')
    cell.click()
    cell.click()
    wait_for_board(page, [[2, 2, 4, 4], [0, 0, 0, 2]])
    cell.click(button="right")
    wait_for_board(page, [[2, 2, 4, 2], [0, 0, 0, 2]])
    page.locator(".palette label", has_text="64").click()
    page.locator('.cell[data-cell="1,0"]').click()
    wait_for_board(page, [[2, 2, 4, 2], [64, 0, 0, 2]])
    shoot(page, "set-up")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    wait_for_board(page, [[2, 2, 4, 2], [64, 8, 0, 2]])
    page.keyboard.press("Backspace")
    wait_for_board(page, [[2, 2, 4, 2], [64, 0, 0, 2]])
    assert page.get_by_label("Board as text").input_value() == "2 2 4 2 / 64 . . 2"
    paste(page, "2 4\n. .\n. 8\n. .\n")
    page.get_by_label("Board as text").press("Enter")
    wait_for_board(page, [[2, 4], [0, 0], [0, 8], [0, 0]])
    wait_for_values(page)
    page.get_by_role("button", name="Play from here").click()
    assert page.locator("#editor").is_hidden()


WRONG = [
    ("2 2 3 . / . . . 2", "malformed_board", "row 1, column 3"),
    ("2 2", "malformed_board", "2 cells given"),
    ("2 2 1024 . / . . . 2", "impossible_board", "the largest is 512"),
    ("512 512 512 . / . . . .", "unreachable_board", "can never occur"),
]


def test_wrong_input_is_said_clearly(open_page):
    page = open_page(START)
    page.get_by_role("button", name="Set up").click()
    for text, code, message in WRONG:
        page.get_by_label("Board as text").fill(text)
        page.get_by_role("button", name="Use").click()
        page.wait_for_selector(f'[data-show="notice"]:has-text("{message}")')
        assert is_noted(page, code)
        assert message in page.locator("#announcer").inner_text()
        shoot(page, f"wrong-{code}")
    assert board_of(page)[0] == [512, 512, 512, 0]
    assert shown(page, "value") == "–"
    page.goto(page.url.split("#")[0] + "#s=2x3-unfinished&b=2,2,0/0,0,0")
    assert is_noted(page, "not_solved")
    shoot(page, "not-solved")


def test_a_permalink_survives_reloading_and_sharing(open_page):
    page = open_page(START)
    wait_for_values(page)
    page.keyboard.press("ArrowLeft")
    wait_for_move(page, START)
    rows, value, url = board_of(page), shown(page, "value"), page.url
    page.reload()
    page.wait_for_selector("body[data-ready]")
    wait_for_values(page)
    assert (board_of(page), page.url) == (rows, url)
    fragment = url.split("#")[1]
    other = open_page("#" + fragment)
    wait_for_values(other)
    assert board_of(other) == rows
    assert shown(other, "value") == value
    other.evaluate("location.hash = '#s=2x3&b=2,2,0/0,0,4'")
    until(other, "document.querySelectorAll('.cell').length === 6")
    wait_for_values(other)
    assert board_of(other) == [[2, 2, 0], [0, 0, 4]]
    broken = open_page("#s=2x4&b=%22><script>alert(1)</script>")
    assert is_noted(broken, "malformed_board")


def test_an_address_of_another_solution_shows_nothing_of_the_one_before(open_page):
    """Nor may a cell be clicked that was to be set up: not while the service is slow, nor after."""
    page = open_page("#s=2x3&b=2,2,0/0,0,4")
    wait_for_values(page)
    page.evaluate("location.hash = '#s=2x3-tile-64&b=none'")
    assert is_noted(page, "malformed_board")
    assert shown(page, "value") == "–"
    page.evaluate("location.hash = '#s=2x3-tile-64&b=2,2,0/0,0,4'")
    wait_for_values(page)
    page.get_by_role("button", name="Set up").click()
    page.route("**/api/v1/board*", lambda route: None)  # never answered
    page.evaluate("location.hash = '#s=2x3-tile-64&b=4,2,0/0,0,4'")
    until(page, "document.querySelector('#editor').hidden")
    assert page.locator("#board").get_attribute("data-allow") == "none"
    page.evaluate("location.hash = '#s=2x3&b=4,2,0/0,0,4'")
    until(page, "document.querySelector('#solution').value === '2x3'")
    assert shown(page, "value") == "–"


def test_a_phone(open_page):
    page = open_page(START, viewport=PHONE, has_touch=True, is_mobile=True)
    wait_for_values(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("up", "down", "left", "right"):
        assert action(page, name).bounding_box()["height"] >= 40
    bottom = action(page, "right").bounding_box()
    assert bottom["y"] + bottom["height"] <= PHONE["height"]
    shoot(page, "phone-light")
    box = page.locator("#board").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 80, y + 5, steps=4)
    page.mouse.up()
    page.wait_for_selector('[data-show="last-move"]:has-text("left")')
    page.get_by_role("button", name="Set up").tap()
    page.locator('.cell[data-cell="1,1"]').tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    shoot(page, "phone-set-up")


CONTRAST = """
() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgb = (color, under) => {
    context.fillStyle = `rgb(${under})`; context.fillRect(0, 0, 1, 1);
    context.fillStyle = color; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (color) => color.map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => element
    ? rgb(getComputedStyle(element).backgroundColor, ground(element.parentElement))
    : [255, 255, 255];
  const worst = {};
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const isOff = element.closest("button")?.disabled;
    if (!own || isOff || !element.checkVisibility({visibilityProperty: true})) continue;
    const under = ground(element);
    const [a, b] = [rgb(getComputedStyle(element).color, under), under].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const isLarge = parseFloat(getComputedStyle(element).fontSize) >= 24;
    if (ratio < (isLarge ? 3 : 4.5)) worst[element.outerHTML.slice(0, 90)] = ratio;
  }
  return worst;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(open_page, scheme):
    for fragment in ("#s=2x4&b=512,256,128,64/32,16,8,4", START, "#s=2x4&b=2,2,2,2/2,2,2,x"):
        page = open_page(fragment, color_scheme=scheme)
        page.get_by_role("button", name="Set up").click()
        assert page.evaluate(CONTRAST) == {}, fragment
        if fragment.startswith("#s=2x4&b=512"):
            shoot(page, f"tiles-{scheme}")


def test_dark(open_page):
    page = open_page(START, color_scheme="dark")
    wait_for_values(page)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(c) for c in re.findall(r"\d+", light)) < 60
    shoot(page, "desktop-dark")
    phone = open_page(START, color_scheme="dark", viewport=PHONE)
    wait_for_values(phone)
    shoot(phone, "phone-dark")


FOCUS = """
() => {
  const e = document.activeElement;
  const rings = [[e], [e.nextElementSibling ?? e], [e, "::before"]];
  const isSeen = rings.map((of) => getComputedStyle(...of))
    .some((style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2);
  return [e.id || e.name || e.dataset.action || e.className || e.textContent, isSeen];
}
"""


def test_the_keyboard_reaches_everything(open_page):
    page = open_page(START)
    wait_for_values(page)
    page.get_by_role("button", name="Set up").press("Enter")
    reached = []
    page.locator("h1").click()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUS))
    names = {name for name, _ in reached}
    wanted = {"solution", "cell", "new-game", "set-up", "copy-link", "spawns", "palette", "text"}
    assert wanted <= names, names
    assert all(is_seen for name, is_seen in reached if name in wanted), reached


def test_the_probability_of_a_tile(open_page, service):
    page = open_page("#s=2x3-tile-64&b=32,16,8/2,2,4")
    wait_for_values(page)
    answer = service.board("32 16 8 / 2 2 4", "2x3-tile-64").json
    assert shown(page, "value") == f"{100 * answer['value']:.3f} %"
    assert "ever holding a 64" in shown(page, "caption")
    assert shown(page, "expected-name") == "Chance of 64"
    shoot(page, "tile-objective")


def test_solutions_are_picked(open_page):
    page = open_page(START)
    options = page.locator("#solution option").all_inner_texts()
    unfinished = "2×3, score (2x3-unfinished)"
    assert options == ["2×4, score", "2×3, score (2x3)", "2×3, reach 64", unfinished]
    page.get_by_label("Solution").select_option("2x3")
    wait_for_values(page)
    assert len(board_of(page)[0]) == 3
    assert page.url.split("#")[1].startswith("s=2x3&")


def test_little_motion_where_it_is_asked_for(open_page):
    page = open_page(START, reduced_motion="reduce")
    page.get_by_label("I choose").check(force=True)
    page.locator("h1").click()
    page.keyboard.press("ArrowLeft")
    assert board_of(page) == [[4, 4, 0, 0], [2, 0, 0, 0]]
    durations = page.locator(".tile").evaluate_all(
        "tiles => tiles.map(tile => getComputedStyle(tile).transitionDuration)"
    )
    assert set(durations) == {"0s"}


def test_the_page_of_the_interface(open_page):
    page = open_page(path="api")
    page.wait_for_selector("text=unreachable_board")
    page.get_by_role("button", name="Try").first.click()
    page.wait_for_selector("text=afterstate_value")
    shoot(page, "api")
