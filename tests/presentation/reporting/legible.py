"""Texts of a page that are too small or too pale, as a browser has drawn them."""

from __future__ import annotations

from typing import Any

from tests.presentation.reporting.browser import Browser

#: Pixels of a letter's height, and the contrast of WCAG 2.2 for texts (success criterion 1.4.3).
SMALLEST, LEAST_CONTRAST = 12.0, 4.5

_FOUND = """(() => {
  const colour = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return parts.length > 3 ? parts : [...parts, 1];
  };
  const luminance = ([red, green, blue]) => {
    const linear = (part) =>
      (part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const own = colour(getComputedStyle(element).backgroundColor);
      if (own[3] > 0.5) return own;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest("script, style, noscript, title, .unseen, .skip")) continue;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const style = getComputedStyle(element), isDrawn = element instanceof SVGElement;
    const turned = isDrawn ? element.getScreenCTM() : null;
    const size = parseFloat(style.fontSize) * (isDrawn ? Math.hypot(turned.a, turned.b) : 1);
    const [pale, dark] = [colour(isDrawn ? style.fill : style.color), ground(element)]
      .map(luminance)
      .sort((one, other) => other - one);
    const contrast = (pale + 0.05) / (dark + 0.05);
    if (size < SMALLEST - 0.05 || contrast < CONTRAST - 0.01)
      found.push([text.slice(0, 40), Math.round(size * 10) / 10, Math.round(contrast * 100) / 100]);
  }
  return found;
})()""".replace("SMALLEST", str(SMALLEST)).replace("CONTRAST", str(LEAST_CONTRAST))


def illegible(page: Browser) -> list[Any]:
    """Text, size in pixels and contrast of each that is seen and cannot be read by everybody."""
    found: list[Any] = page.evaluate(_FOUND)
    return found
